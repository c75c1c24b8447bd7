// early_loads: kernels that wait for the launch before them load what they can before they compute.
//
// Needs: bound kernels (loop/threads.h) in which order_launches has put waits, with loops written
// out. Ensures: loads of parameters that a kernel does not write, at places known in front, stand
// ahead of everything else, into memory of the thread, as far as registers are left: in front of
// the wait those of parameters that are not awaited, and behind it, of the others, those behind a
// barrier. What stands behind a loop, or in a kernel that calls functions of warps, stays. Why
// here: a store may be to memory that a load reads, as far as a compiler knows, and nothing passes
// a barrier, so neither compiler nor machine begins such loads early; and before loops are written
// out a load is many.
#pragma once

#include "loop/pass/pass.h"

namespace tenon {

Module EarlyLoads(const Module& module, const PassContext& context);

}  // namespace tenon
