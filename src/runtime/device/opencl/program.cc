#include "runtime/device/opencl/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <new>

#include "runtime/core/error.h"
#include "runtime/device/opencl/errors.h"

namespace tenon::runtime::opencl {

/// An object of OpenCL that belongs to a context.
struct InContext {
  Handle context, object;
  InContext* next;
};

struct Function {
  Module* module;
  Function* next;
  InContext* kernels;
  uint32_t lock;  // held by whoever sets arguments
  char name[1];   // and behind this object
};

struct Module {
  InContext* programs;
  Function* functions;
  uint32_t lock;
  size_t bytes;

  char* source() { return reinterpret_cast<char*>(this + 1); }
};

int32_t Raise(int32_t id, const char* function, const char* of, Result result, const char* log) {
  char message[1024];
  snprintf(message, sizeof message, "%s%s%s%s on opencl:%d failed: %s (error %d)%s%s", function,
           of ? " of '" : "", of ? of : "", of ? "'" : "", id, ErrorName(result), result,
           *log ? ": " : "", log);
  const bool memory = result == kAllocationFailure || result == kOutOfHostMemory;
  return Fail(memory ? "MemoryError" : "RuntimeError", message);
}

namespace {

Handle FindOf(const InContext* list, Handle context) {
  for (const InContext* at = list; at; at = at->next) {
    if (at->context == context) return at->object;
  }
  return nullptr;
}

// False + error where there is no memory for it.
bool Keep(InContext** list, Handle context, Handle object) {
  auto* row = static_cast<InContext*>(malloc(sizeof(InContext)));
  if (!row) {
    SetError("MemoryError", "out of memory");
    return false;
  }
  *row = {context, object, *list};
  *list = row;
  return true;
}

void FreeAll(InContext* list, Result (*release)(Handle)) {
  while (list) {
    InContext* next = list->next;
    release(list->object);
    free(list);
    list = next;
  }
}

void RaiseLog(const Place& place, Handle program, Result result) {
  size_t size = 0;
  place.library->build_info(program, place.device, kBuildLog, 0, nullptr, &size);
  char* log = static_cast<char*>(calloc(size + 1, 1));
  if (log) place.library->build_info(program, place.device, kBuildLog, size, log, nullptr);
  Raise(place.id, "clBuildProgram", nullptr, result, log ? log : "");
  free(log);
}

Handle Build(const Place& place, Module* module) {
  const Library& cl = *place.library;
  const char* source = module->source();
  Result result = 0;
  Handle program = cl.program_make(place.context, 1, &source, &module->bytes, &result);
  if (!program) {
    Raise(place.id, "clCreateProgramWithSource", nullptr, result);
    return nullptr;
  }
  Flags floats = 0;
  cl.device_info(place.device, kDeviceFloatConfig, sizeof floats, &floats, nullptr);
  const char* options = floats & kCorrectlyRoundedDivideSqrt
                            ? "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt"
                            : "-cl-std=CL1.2";
  result = cl.program_build(program, 1, &place.device, options, nullptr, nullptr);
  if (result != 0) RaiseLog(place, program, result);
  if (result == 0 && Keep(&module->programs, place.context, program)) return program;
  cl.program_free(program);
  return nullptr;
}

Handle ProgramIn(const Place& place, Module* module) {
  MutexLock guard(&module->lock);
  Handle program = FindOf(module->programs, place.context);
  return program ? program : Build(place, module);
}

// The function's lock is held.
Handle KernelIn(const Place& place, Function* function) {
  if (Handle kernel = FindOf(function->kernels, place.context)) return kernel;
  Handle program = ProgramIn(place, function->module);
  if (!program) return nullptr;
  Result result = 0;
  Handle kernel = place.library->kernel_make(program, function->name, &result);
  if (!kernel) {
    Raise(place.id, "clCreateKernel", function->name, result);
    return nullptr;
  }
  if (Keep(&function->kernels, place.context, kernel)) return kernel;
  place.library->kernel_free(kernel);
  return nullptr;
}

}  // namespace

Module* MakeModule(const Place& place, const char* source, size_t bytes) {
  void* memory = malloc(sizeof(Module) + bytes);
  if (!memory) {
    SetError("MemoryError", "out of memory");
    return nullptr;
  }
  auto* module = new (memory) Module{};
  module->bytes = bytes;
  memcpy(module->source(), source, bytes);
  if (ProgramIn(place, module)) return module;
  free(module);
  return nullptr;
}

void FreeModule(const Library& library, Module* module) {
  while (Function* function = module->functions) {
    module->functions = function->next;
    FreeAll(function->kernels, library.kernel_free);
    free(function);
  }
  FreeAll(module->programs, library.program_free);
  free(module);
}

Function* FindIn(const Place& place, Module* module, const char* name) {
  const size_t size = strlen(name);
  void* memory = malloc(sizeof(Function) + size);
  if (!memory) {
    SetError("MemoryError", "out of memory");
    return nullptr;
  }
  auto* function = new (memory) Function{};
  function->module = module;
  memcpy(function->name, name, size + 1);
  if (!KernelUse(place, function).kernel) {
    free(function);
    return nullptr;
  }
  MutexLock guard(&module->lock);
  function->next = module->functions;
  module->functions = function;
  return function;
}

KernelUse::KernelUse(const Place& place, Function* function) : lock_(&function->lock) {
  kernel = KernelIn(place, function);
}

}  // namespace tenon::runtime::opencl
