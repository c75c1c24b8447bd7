// The compiler: schedules and models in, code out. C++20; link Tenon::compiler.
//
//   Library add = Build(s, {a, b, c}, Target("llvm"), "add");
//   add.GetFunction("add")(x, y, z);
//   add.ExportLibrary("add.so");  // Module::LoadFromFile reads it, wherever the runtime is
//
// Errors are thrown as tenon::Error with the compiler's diagnostics as their message.
#ifndef TENON_COMPILER_HPP_
#define TENON_COMPILER_HPP_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tenon/ir.hpp"
#include "tenon/schedule.hpp"
#include "tenon/te.hpp"
#include "tenon/tenon.hpp"

namespace tenon {
inline namespace v0 {

struct TargetData;
struct LibraryData;

/// What code is made for: docs/targets.md.
class TN_API Target {
 public:
  /// This machine.
  Target() : Target("llvm") {}
  /// Reads a target string.
  explicit Target(const std::string& text);
  std::string str() const;
  /// "llvm", "c", "cuda", …
  std::string kind() const;
  /// The words of -mattr that code for it may use.
  std::vector<std::string> features() const;
  const TargetData& data() const { return *data_; }
  friend bool operator==(const Target& a, const Target& b) { return a.str() == b.str(); }

 private:
  std::shared_ptr<const TargetData> data_;
};

/// Code that was built, in memory. A handle.
class TN_API Library {
 public:
  explicit Library(std::shared_ptr<LibraryData> data) : data_(std::move(data)) {}

  /// Loads the code into this process at the first call. Errors: it was built for another machine.
  Function GetFunction(const std::string& name) const;
  Module module() const;
  std::vector<std::string> functions() const;
  Target target() const;
  /// What the compiler did by itself, such as a default binding of loops to threads, or could not
  /// do: a sentence each, which begins with the function's name.
  std::vector<std::string> remarks() const;
  /// The forms in which GetSource and Save give the kernels of a GPU target: "cu", "ptx", "cubin";
  /// none for other targets. Where NVRTC is missing only source, and the library cannot be linked.
  std::vector<std::string> device_forms() const;

  /// Writes a shared library that needs libc alone.
  void ExportLibrary(const std::string& path) const;
  /// By the name's end: ".so" a shared library; ".o" an object with the runtime core, to be linked
  /// by others, several of them together, too; ".tar" the library and what it was made of, which
  /// tenon.runtime.load_module reads; ".c", ".ll", ".s", ".tir" the source in that form; ".cu",
  /// ".ptx", ".cubin", ".cl" the kernels of a GPU target.
  void Save(const std::string& path) const;
  /// For C programs: `path`, which may end in .o or .c (C11 source, whatever the target), and the
  /// header beside it, which declares the functions with their tensors as pointers. A single
  /// function may be given another name.
  void ExportToC(const std::string& path, const std::string& function_name = "") const;
  /// The code as "c" (target c), "cuda", "ptx", "cubin" (a GPU target's kernels), "llvm" (or "ll"),
  /// "asm" (or "s"; of a GPU target the host's), or loop IR as built ("tir") or lowered
  /// ("lowered"). "": what the target's is.
  std::string GetSource(const std::string& format = "") const;

 private:
  std::shared_ptr<LibraryData> data_;
};

/// The loop IR of a schedule, as Build would take it. `args` are the parameters in order: every
/// input that is read, the variables that are passed by value (sizes that are dims of an input need
/// not be), then every output.
TN_API IrModule Lower(const Schedule& schedule, const te::Arguments& args,
                      const std::string& name = "main");
/// Code of a schedule, or of functions of loop IR whose attribute `exported` is true. A library
/// with one function exports it as "main" too.
TN_API Library Build(const Schedule& schedule, const te::Arguments& args,
                     const Target& target = Target(), const std::string& name = "main");
TN_API Library Build(const IrModule& module, const Target& target = Target());

/// Writes the object `path`, by which a library that is linked of it and several objects of
/// Library::Save describes the functions of all; without it, only those of the first. False, and
/// nothing is written, where fewer than two of the files are such objects.
TN_API bool DescribeObjects(const std::vector<std::string>& objects, const std::string& path);

/// A size of a model's input: a number, or, for one that stays open, a name with the sizes it may
/// have: "batch", "batch[1..16]", "seq[32..512 step 32]". What has one name has one size.
struct Size {
  Size(int64_t number) : text(std::to_string(number)) {}
  Size(int number) : text(std::to_string(number)) {}
  Size(std::string name) : text(std::move(name)) {}
  Size(const char* name) : text(name) {}
  std::string text;
};

/// What `tenon compile` takes; docs/command-line.md.
struct ModelOptions {
  Target target;
  /// Sizes of inputs, by name; without them they are the model's, and stay open where it says none.
  std::map<std::string, std::vector<Size>> shapes;
  /// Sizes that the model leaves open may be 0, too.
  bool empty_sizes = false;
  std::string name = "main";
  std::string precision = "fp32";
  int opt_level = 2;
  int jobs = 0;
  /// Launches of kernels are counted, and the time that they take, each alone, which the library's
  /// function NAME_launch_times tells: an i64[n, 2] of counts and nanoseconds since it was loaded.
  /// What the rows are is in its information ("launches").
  bool time_kernels = false;
  /// A log of tuning that kernels are chosen by (docs/tuning.md); "": none.
  std::string log;
  /// Where the files of external weights lie; "": beside the model.
  std::string external_data_dir;

  // What the caller knows better than the file.
  /// Sizes of the dims that the model calls so.
  std::map<std::string, int64_t> dims;
  /// Sizes of the dims that the model leaves open and denotes so, in small letters.
  std::map<std::string, int64_t> denoted_dims;
  /// Dims of inputs that have one name need not be of one size.
  bool independent_dims = false;
  /// Initializers that the graph lists among its inputs, and that become such.
  std::vector<std::string> inputs;
  /// Values of initializers, by name, and of inputs, which become constants; copied. Their types
  /// must be the file's. Compact.
  std::map<std::string, Tensor> initializers;
  /// Those of them that the model need not have.
  std::vector<std::string> spare_initializers;

  /// Called when a phase begins ("import", "graph", "lower", "kernels", "weights", "link") and as
  /// it goes on, from any thread.
  std::function<void(const std::string& phase, int64_t done, int64_t total)> progress;
  /// Asked a few times a second, on the calling thread; true: compiling ends with an Error.
  std::function<bool()> stop;
};
/// Compiles an ONNX file into the shared library `output`.
TN_API void CompileModel(const std::string& model, const std::string& output,
                         const ModelOptions& options = {});

/// The folder of models that `tenon run` and others compile: TENON_CACHE_DIR, else ~/.cache/tenon.
/// Errors: nothing can be written there.
TN_API std::string CacheDirectory();
/// The path of the model's library in `directory`, which is compiled where it is not there: the
/// same files, options and target once. Any threads and processes may ask at the same time.
TN_API std::string CompileCached(const std::string& model, const std::string& directory,
                                 const ModelOptions& options = {});

/// What the file says of itself, as JSON: "inputs", "outputs" and "overridable" (initializers that
/// are listed as inputs, too), each [{"name", "dtype", "shape"}, …] with sizes as numbers, names
/// and "?", without a shape where the model gives none; "metadata", "producer_name", "domain",
/// "model_version", "doc", "graph", "graph_doc", "ir_version", "opset", "operators".
TN_API std::string DescribeModel(const std::string& model);
/// The same with shapes as they are inferred, and "unsupported", everything that keeps it from
/// being compiled: [{"operator", "domain", "version", "reason", "nodes"}, …].
TN_API std::string DescribeModel(const std::string& model, const ModelOptions& options);

}  // namespace v0
}  // namespace tenon

#endif  // TENON_COMPILER_HPP_
