// Kernels that need more than one launch: a part of wrap_exports.
#pragma once

#include <vector>

#include "loop/pass/pass.h"

namespace tenon {

struct KernelParts {
  std::vector<Func> kernels;    // in the order of their launches; one alone is the kernel itself
  std::vector<Buffer> between;  // what they hand over in global memory, parameters of those kernels
};

/// A GPU kernel's statements outside of all loops, one launch each: blocks of threads cannot wait
/// for each other, but a launch waits for the one before it. Statements that hand over memory of a
/// thread or block stay together, and all of them do in a kernel of one block of threads, whose
/// global memory in between becomes the block's (unless there is too much of it), or with a loop
/// that is `cooperative`. The parts are named NAME_0, NAME_1, …; a part with a loop that has
/// `dependent_launch` says what it must wait for (loop/threads.h). The module has the functions
/// that it calls.
KernelParts SplitKernel(const Func& kernel, const Module& module);

/// A kernel of one launch with what its loops and blocks ask of that as an attribute of its own: it
/// is cooperative (or not to be split).
Func WithLaunchAttributes(const Func& func);
/// Reports a dependent launch that has none before it.
void CheckDependentLaunch(const PrimFunc& func, const PassContext& context);

}  // namespace tenon
