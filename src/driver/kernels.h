// The kernels of a build on their way to objects.
#pragma once

#include <string>
#include <vector>

#include "loop/func.h"
#include "support/diagnostic.h"

namespace tenon::driver {

struct KernelResult {
  std::string name;
  Module scheduled;                    // the kernel and what it calls
  Module lowered;                      // the same, with the micro-kernels
  std::vector<std::string> functions;  // those of them that its object defines
  std::string object;
  std::vector<std::string> remarks;
  Diagnostics errors;
};

/// Each kernel of a module with the functions that it calls, in name order.
std::vector<KernelResult> KernelsOf(const Module& module);

/// Equal micro-kernels of several kernels become one: the first kernel's, which defines it for all.
void ShareMicroKernels(std::vector<KernelResult>* kernels);

/// Kernels that are compiled as one module, in their order: LLVM takes some milliseconds for each
/// module, and NVRTC thirty, whatever is in it, and a network may have a hundred small ones. Those
/// of one batch define no two functions of one name, where they are to be `distinct`.
std::vector<std::vector<KernelResult*>> Batches(std::vector<KernelResult>* kernels, bool distinct);

/// One file holds the functions of all kernels: device functions that are not shared get their
/// kernel's name where another has theirs.
void AddKernel(const Module& lowered, const std::string& kernel, Module* whole);

}  // namespace tenon::driver
