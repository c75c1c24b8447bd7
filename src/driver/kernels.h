// Kernels and host functions to objects, kernels in parallel.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codegen/codegen.h"
#include "codegen/gpu/device_code.h"
#include "driver/pipeline.h"
#include "schedule/schedule.h"
#include "support/expected.h"
#include "target/target.h"

namespace tenon::driver {

/// What code generation made of a module of kernels and host functions.
struct CompiledModule {
  /// Relocatable images: one per kernel in name order, then the host functions'; one alone where
  /// the request says so. None of source.
  std::vector<std::string> objects;
  Module host;   // the lowered host functions with their attributes (arena_bytes, plan)
  Module whole;  // every function, lowered
  codegen::EmitOptions emit;         // what goes with the host functions
  codegen::DeviceCode device;        // of a device: its kernels
  std::vector<std::string> remarks;  // what passes did by themselves, or could not do
};

struct KernelJob {
  /// Of the kernels; what runs on its host's CPU follows from it.
  const Target* target = nullptr;
  PassHooks hooks;
  /// Schedules a kernel; null: they are scheduled. Called from several threads.
  std::function<Expected<Schedule>(const Func& kernel)> schedule;
  /// Sees each kernel's schedule. Called from several threads.
  std::function<void(const Schedule& schedule, double seconds)> after_schedule;
  /// Told how long LLVM took for each kernel. Called from several threads.
  std::function<void(double seconds)> after_codegen;
  int jobs = 1;
  /// Source is wanted: no objects are made.
  bool source = false;
  /// One object for all functions.
  bool together = false;
  /// Makes the host functions' bodies (tn_body_fn) visible outside the library.
  bool export_bodies = false;
  /// Changes the lowered host functions, before anything is made of them.
  std::function<Status(Module* host)> finish_host;
  /// Data that goes with the host functions, which have been lowered by then.
  std::function<std::vector<codegen::DataBlob>(const Module& host)> blobs;
  /// Functions by which C programs get the thread's last error (codegen::EmitOptions).
  std::vector<std::string> error_texts;
  /// Sees each finished module of kernels (in name order) and then the host's, for dumps.
  std::function<Status(const Module& lowered, const std::vector<std::string>& functions)> inspect;
  std::function<void(int64_t done, int64_t total)> progress;
};

/// A kernel's signature and attributes, and the axes of its launch where it has one: all that host
/// functions need of it.
Func Declaration(const Func& kernel);
/// Adds the idle arenas of every exported function that borrows one and has none among the blobs.
void AddInstances(const Module& host, std::vector<codegen::DataBlob>* blobs);

/// Schedules, lowers and compiles every function of the module, kernels in parallel: by the
/// pipeline and the code generator that the target's kind names.
Expected<CompiledModule> CompileModule(const Module& module, const KernelJob& job);

}  // namespace tenon::driver
