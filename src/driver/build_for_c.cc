// What C programs and C compilers have to do with built code.
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

#include "driver/build.h"
#include "ir/print.h"
#include "support/file.h"

namespace tenon::driver {

namespace {

namespace fs = std::filesystem;

/// A folder of its own, gone at the end.
class Folder {
 public:
  static Expected<std::unique_ptr<Folder>> Create() {
    std::error_code none;
    std::string name = (fs::temp_directory_path(none) / "tenon-XXXXXX").string();
    if (!mkdtemp(name.data())) {
      return MakeLimitError(fmt::format("cannot make the folder {}: {}", name, strerror(errno)));
    }
    auto folder = std::make_unique<Folder>();
    folder->path_ = name;
    return folder;
  }
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  std::string File(const char* name) const { return (fs::path(path_) / name).string(); }

 private:
  std::string path_;
};

// The status of a program with its output in a file; -1 where there is no such program.
int Run(const std::vector<std::string>& command, const std::string& output) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  int failure = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) return -1;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

std::vector<std::string> Compilers() {
  const char* chosen = getenv("CC");
  if (chosen && *chosen) return {chosen};
  return {"cc", "gcc", "clang", "clang-19"};
}

std::string CType(DType t) {
  if (t.IsBool()) return "uint8_t";
  if (t.code == TypeCode::kBFloat || (t.IsFloat() && t.bits == 16)) return "uint16_t";
  if (t.IsFloat()) return t.bits == 64 ? "double" : "float";
  return fmt::format("{}int{}_t", t.code == TypeCode::kUInt ? "u" : "", t.StorageBits());
}

std::string Upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return isalnum(c) ? toupper(c) : '_'; });
  return text;
}

int64_t Workspace(const PrimFunc& f, const Module& lowered) {
  for (const auto& [name, other] : lowered.funcs) {
    if (name.starts_with(f.name + "_kernel.host")) {
      if (int64_t bytes = other->attrs.GetInt("arena_bytes")) return bytes;
    }
  }
  return 0;
}

std::string DeclarationOf(const PrimFunc& f, const BuiltCode& code) {
  std::string parameters, tensors;
  const size_t inputs = f.buffers.size() - static_cast<size_t>(f.num_outputs);
  for (size_t i = 0; i < f.buffers.size(); ++i) {
    const BufferNode& b = *f.buffers[i];
    std::string shape;
    for (const Expr& e : b.shape) shape += fmt::format("[{}]", ToString(e));
    parameters += fmt::format("{}{}* {}, ", i < inputs ? "const " : "", CType(b.dtype), b.name);
    tensors += fmt::format(" *   {}: {}{}\n", b.name, LongName(b.dtype), shape);
  }
  for (size_t i = 0; i < f.dims.size(); ++i) {
    const DimRange range = f.dim_range(i);
    parameters += fmt::format("int64_t {}, ", f.dims[i]->name);
    tensors += fmt::format(" *   {}: at least {}", f.dims[i]->name, range.lo);
    if (range.hi >= 0) tensors += fmt::format(", at most {}", range.hi);
    if (range.step > 1) tensors += fmt::format(", a multiple of {}", range.step);
    tensors += "\n";
  }
  for (const Var& v : f.scalars) {
    parameters += fmt::format("{} {}, ", CType(v->dtype), v->name);
    tensors += fmt::format(" *   {}: {}\n", v->name, LongName(v->dtype));
  }
  return fmt::format(
      R"(
/* What a call of {name} needs for intermediate values, aligned to 64 bytes. */
#define {upper}_WORKSPACE_BYTES {workspace}
/* Runs on the caller's thread and allocates nothing; the tensors are compact and row-major, of these
 * sizes, which cannot be checked. Several threads may call it at once, each with a workspace of its
 * own. Returns 0, or -1, having done nothing, where the CPU lacks what the code needs, a size is out
 * of its range or would lead outside a tensor, a pointer is null or not aligned (a tensor's to its
 * element, the workspace to 64 bytes), or an output overlaps another tensor.
{tensors} */
int32_t {name}({parameters}void* workspace);
/* The same in the packed signature of TVM-FFI, with all arguments checked. */
int32_t __tvm_ffi_{name}(void* self, void* args, int32_t num_args, void* result);
/* What went wrong in this thread's last call that returned -1: "ValueError: Parameter ...". */
const char* {name}_error(void);
)",
      fmt::arg("name", f.name), fmt::arg("upper", Upper(f.name)),
      fmt::arg("workspace", Workspace(f, code.lowered)), fmt::arg("tensors", tensors),
      fmt::arg("parameters", parameters));
}

}  // namespace

// What the first compiler that is there makes of a file in the folder.
static Expected<std::string> Compile(const Folder& folder, const char* file,
                                     std::vector<std::string> options) {
  const std::string output = folder.File("output"), messages = folder.File("messages");
  std::vector<std::string> command = {
      "",     "-std=c11",       "-O2", "-fPIC", "-ffp-contract=off", "-fvisibility=hidden", "-o",
      output, folder.File(file)};
  command.insert(command.end(), options.begin(), options.end());
  for (const std::string& compiler : Compilers()) {
    command[0] = compiler;
    int status = Run(command, messages);
    if (status < 0 || status == 127) continue;
    if (status == 0) return ReadFile(output);
    Expected<std::string> said = ReadFile(messages);
    return MakeError(
        fmt::format("{} does not compile the source: {}", compiler, said ? *said : std::string()));
  }
  return MakeError(
      "there is no C compiler for target c: none of cc, gcc and clang is on the path; set CC");
}

Expected<std::string> CompileObject(const std::string& source) {
  TN_ASSIGN_OR_RETURN(std::unique_ptr<Folder> folder, Folder::Create());
  TN_RETURN_IF_ERROR(WriteFile(folder->File("code.c"), source));
  return Compile(*folder, "code.c", {"-c", "-DTN_WITH_CORE"});
}

Expected<std::string> SharedLibraryOf(const std::string& object) {
  TN_ASSIGN_OR_RETURN(std::unique_ptr<Folder> folder, Folder::Create());
  TN_RETURN_IF_ERROR(WriteFile(folder->File("code.o"), object));
  return Compile(*folder, "code.o", {"-shared", "-Wl,-z,nodelete", "-Wl,--no-undefined", "-lm"});
}

std::string HeaderOfBuilt(const Module& source, const BuiltCode& code, const std::string& name) {
  const std::string guard = Upper(name) + "_TENON_H_";
  std::string text = fmt::format(
      "/* Compiled by Tenon. Link {}. */\n#ifndef {}\n#define {}\n\n#include <stdint.h>\n\n"
      "#ifdef __cplusplus\nextern \"C\" {{\n#endif\n",
      code.source.empty() ? name + ".o" : name + ".c", guard, guard);
  for (const std::string& function : code.functions) {
    text += DeclarationOf(*source.Find(function), code);
  }
  return text + fmt::format("\n#ifdef __cplusplus\n}}\n#endif\n#endif /* {} */\n", guard);
}

}  // namespace tenon::driver
