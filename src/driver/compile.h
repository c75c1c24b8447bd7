// Compiling a model: from a file to an artifact. What the command line and the C++ façade call.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "driver/build.h"
#include "driver/pipeline.h"
#include "frontend/onnx/import.h"
#include "graph/lower/lower.h"
#include "plan/shape_weights.h"
#include "support/expected.h"

namespace tenon::driver {

enum class ParamsMode { kEmbed, kSeparate };
enum class OutputFormat { kSharedLibrary, kObject, kCSource };

struct CompileOptions {
  std::string model;  // path of an ONNX file
  /// Path of the artifact, or a folder ("dir/", or one that exists): then model.so in it, with
  /// metadata.json and inference_example.cpp beside it.
  std::string output;
  std::string name = "main";  // an identifier of C; another one than main also gives a header,
                              // name.h beside the artifact
  std::string target = "llvm";
  std::map<std::string, std::vector<onnx::DimSpec>> shapes;  // by input
  bool empty_sizes = false;  // sizes that the model leaves open may be 0, too
  std::string external_data_dir;
  onnx::Overrides overrides;        // of what the file says
  onnx::CustomOperators operators;  // of users
  std::vector<std::string> link;    // paths of objects with C functions that these call
  bool open = false;  // others that they call are those of the process that loads the library
  /// One of kPrecisions (check_options.h). "exact" and "fp32" both compute in fp32 today; "tf32"
  /// lets products round their factors to 10 bits of mantissa; "bf16" and "fp16" keep factors of
  /// products and values between kernels in 16 bits.
  std::string precision = "fp32";
  int opt_level = 2;   // 0: one kernel per operator, plain schedules; 1: fusion; 2: layouts and
                       // algorithms; 3: as 2
  std::string prices;  // path of a file of measured points (plan/records.h), which planning asks
                       // before its model; "": none
  std::string log;     // path of a log of tuning (tune/log.h), likewise
  // Sizes of open dims that count where plans follow measurements; empty: those that stand for
  // their ranges (plan/shape_weights.h).
  std::vector<plan::ShapeWeight> shape_weights;
  bool any_machine = false;  // records of the log, and a profile, count wherever they were made
  std::string profile;  // rates to plan by (profile.h): path of a file, or "host", this machine,
                        // measured where it was not before; "": the target's preset
  ParamsMode params = ParamsMode::kEmbed;
  OutputFormat format = OutputFormat::kSharedLibrary;
  std::set<std::string> emit;  // "graph", "loop", "llvm", "asm", "c": files beside the output
  std::vector<std::string> export_kernels;
  bool visible = false;  // of objects and C source: exports can be seen outside of the program or
                         // library that they are linked into
  std::string soname;    // of a library; "": its file's name
  bool time_kernels = false;  // launches are counted, and their time, which NAME_launch_times
                              // tells; each waits for the one before it
  std::set<std::string> print_after;  // passes after which the IR goes to `dump`
  std::set<std::string> disabled_passes;
  bool verify_each =
      kVerifyByDefault;  // the IR after every phase and pass; a fault is a bug of ours
  int jobs = 0;          // 0: as many as the machine has
  std::string cache;     // a folder that keeps kernels' code (driver/cache.h); "": all is made anew

  /// Called when a phase begins ("import", "graph", "lower", "kernels", "weights", "link") and as
  /// it goes on.
  std::function<void(const std::string& phase, int64_t done, int64_t total)> progress;
  std::function<void(const std::string& text)> dump;
  /// What is odd about a model that is compiled all the same; null: nobody is told.
  std::function<void(const std::string& warning)> warn;
};

struct KernelReport {
  std::string name, kind;
  int64_t flops = 0, bytes = 0;  // of one launch
  int64_t launches = 0;
  double estimated_us = 0;  // of one launch, on as many cores as the target says, else on one
};

struct PassTime {
  std::string name;
  double seconds = 0;
  int64_t runs = 0;
};

struct CompileReport {
  std::string artifact;  // its path
  std::string params;    // that of the file of weights; "": they are in the artifact
  std::string
      lacks_core_for;  // a triple: the object needs a runtime core that is not here; else ""
  std::vector<KernelReport> kernels;
  std::vector<PassTime>
      passes;  // phases and passes, in order of first run; kernels' passes are summed over threads
  int64_t artifact_bytes = 0;  // with the file of weights where that is separate
  int64_t weights_bytes = 0, arena_bytes = 0;
  /// At a precision of 16 bits: values between kernels that are so, and the names of those that
  /// stayed f32.
  int64_t narrow_values = 0;
  std::vector<std::string> wide_values;
  /// What a device's compiler says of right code: registers that spill, warnings. Of kernels that
  /// were compiled now.
  std::vector<std::string> remarks;
  double seconds = 0;
};

/// A network's function NAME that is timed has another beside it, NAME_launch_times, whose result
/// is an i64[n, 2]: how often each launch has happened since the library was loaded, and the
/// nanoseconds that it took. The library's information says what they are ("launches").
inline constexpr const char* kTimesSuffix = "_launch_times";

/// The phases, in order; what else CompileReport::passes names is a pass or a part of "kernels".
const std::vector<std::string>& Phases();

Expected<CompileReport> Compile(const CompileOptions& options);

/// The code and weights of a network as a build, without outputs and a description. Lowered for
/// `machine`, what computes weights for `build_machine`. `network` outlives the request.
BuildRequest RequestOf(const graph::LoweredNetwork& network, const Machine& machine,
                       const Machine& build_machine);

}  // namespace tenon::driver
