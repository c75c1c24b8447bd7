// Kernels from source: built for each context that they are launched in, and kept.
#pragma once

#include "runtime/core/os.h"
#include "runtime/device/opencl/library.h"

namespace tenon::runtime::opencl {

struct Module;
struct Function;

/// Sets the thread's error and returns -1: what failed, on which device, and why. `of` is a
/// kernel's name, or null; `log` says more where it is not empty.
int32_t Raise(int32_t id, const char* function, const char* of, Result result,
              const char* log = "");

/// Where kernels are built and run.
struct Place {
  const Library* library;
  int32_t id;  // for errors
  Handle device, context;
};

// All return null + error where it fails. Any thread may call them.

/// The program, built there.
Module* MakeModule(const Place& place, const char* source, size_t bytes);
/// Its functions go with it.
void FreeModule(const Library& library, Module* module);
/// A kernel of the program, with the program built there.
Function* FindIn(const Place& place, Module* module, const char* name);

/// The kernel's object in the place's context, for the caller alone while this object lives:
/// arguments are set in it. Null + error where the program cannot be built there.
class KernelUse {
 public:
  KernelUse(const Place& place, Function* function);

  Handle kernel = nullptr;

 private:
  MutexLock lock_;
};

}  // namespace tenon::runtime::opencl
