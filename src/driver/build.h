// A build: from a module to outputs. Networks (compile.h) and functions that somebody wrote
// (functions.h) are two ways to make a request; what computes weights from weights is a third,
// whose code is loaded instead of written. What functions become follows from the rows of their
// targets: the pipeline, the code generator, what the library carries.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "codegen/codegen.h"
#include "codegen/gpu/device_code.h"
#include "driver/outputs.h"
#include "driver/pipeline.h"
#include "driver/weights.h"
#include "schedule/schedule.h"
#include "support/expected.h"
#include "support/file_cache.h"
#include "target/target.h"

namespace tenon::driver {

/// Looks at a build from outside. Called from several threads.
struct BuildHooks {
  PassHooks passes;
  std::function<void(const Schedule& schedule, double seconds)> after_schedule;
  /// Told how long LLVM took for each kernel.
  std::function<void(double seconds)> after_codegen;
  /// Called when a phase begins ("kernels", "link", "weights") and as it goes on.
  std::function<void(const std::string& phase, int64_t done, int64_t total)> progress;
  std::function<void(const char* phase, double seconds)> after_phase;
};

/// Runs `f`, which returns something that can fail, as a phase that the hooks hear of.
template <class F>
auto InPhase(const BuildHooks& hooks, const char* phase, F&& f) {
  if (hooks.progress) hooks.progress(phase, 0, 1);
  const auto start = std::chrono::steady_clock::now();
  auto result = f();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  if (hooks.after_phase) hooks.after_phase(phase, taken.count());
  if (result && hooks.progress) hooks.progress(phase, 1, 1);
  return result;
}

/// A program whose parts are the exported functions PartName(name, 0), …: its words, and how many
/// parts it has.
struct ProgramRequest {
  std::string name, words;
  size_t parts = 0;
  TargetRef target;
};
std::string PartName(const std::string& program, size_t part);

struct BuildRequest {
  /// Kernels with what they call, and the host functions that launch them; each has its target:
  /// kernels all the same one, host functions that of its host.
  Module module;
  /// Schedules a kernel; null: they are scheduled. Called from several threads.
  std::function<Expected<Schedule>(const Func& kernel)> schedule;
  /// What the module was made of, as people wrote it; null: the module itself.
  std::shared_ptr<const Module> source;
  std::shared_ptr<const Weights> weights;  // null: none
  /// What the library says of itself, as JSON text (kernel_abi.h, tn_blob_info), told the lowered
  /// host functions; null: nothing.
  std::function<std::string(const Module& host)> describe;
  /// The program that the functions are parts of (graph/program.h); no words: there is none.
  ProgramRequest program;
  /// Further names of exported functions: (name, function).
  std::vector<std::pair<std::string, std::string>> aliases;
  /// Functions by which C programs get the thread's last error (codegen::EmitOptions).
  std::vector<std::string> error_texts;
  /// Whether the exports of objects and C source can be seen outside of the program or library that
  /// they are linked into; a library's always can.
  bool visible = true;
  /// The name that programs which are linked with the library ask for; "": that of its file.
  std::string soname;
  /// Objects that others made, with C functions that the code calls: (path, image).
  std::vector<std::pair<std::string, std::string>> linked;
  /// C functions that nobody defines are those of the process that loads a library.
  bool open = false;
  /// One object for all functions; else one for each kernel, made in parallel.
  bool together = false;
  /// All of the code runs once, on little data.
  bool quickly = false;
  /// Keeps the code of kernels, which is made once for all builds; null: nothing is kept.
  std::shared_ptr<const FileCache> cache;
  /// Makes the host functions' bodies (tn_body_fn) visible outside the library.
  bool export_bodies = false;
  std::vector<Output> outputs;  // in the order in which they are written
  BuildHooks hooks;
  std::string new_folder;  // is made for the outputs; "": none
  int jobs = 1;
};

/// Functions that go through a code generator together.
struct CodeUnit {
  Module module;                       // lowered; what they call is there, at least declared
  std::vector<std::string> functions;  // that it defines; empty: all of the module
  bool on_device = false;              // its code is in Built::device
  bool quickly = false;                // codegen::EmitOptions
};

/// The code of a module.
struct Built {
  BuildRequest request;
  TargetRef target;                  // of the kernels
  std::vector<CodeUnit> units;       // kernels by name, then the host functions; or one for all
  std::vector<std::string> objects;  // relocatable images; none where the target is source
  Module host;                       // the lowered host functions (arena_bytes, plan)
  Module whole;                      // every function, lowered
  codegen::EmitOptions emit;         // what goes with the host functions
  codegen::DeviceCode device;        // of a device: its kernels
  std::string info;                  // what `describe` said
  std::vector<std::string> exports;  // symbols of the functions that can be called
  std::vector<std::string> remarks;  // what passes did by themselves, or could not do

  uint64_t WeightsBytes() const { return request.weights ? request.weights->bytes : 0; }
  const Module& source() const { return request.source ? *request.source : request.module; }
};

/// The code, after every output has been written. Kernels are lowered in parallel and then share
/// micro-kernels. Errors: those of schedules and passes, with the kernel's name; what a target's
/// code generator refuses; files that cannot be written.
Expected<Built> Build(BuildRequest request);

}  // namespace tenon::driver
