// order_launches: the kernel of a dependent launch waits for the launch before it.
//
// Needs: kernels in their bound form (loop/threads.h), with the attributes `awaits` and
// `precedes_dependent` that split_launches gave them. Ensures: every thread of a kernel that awaits
// something waits once, outside of all loops, before the first statement that touches what is named
// there or global memory made in the kernel; what stands before runs while the launch before ends,
// and plain statements behind it that could as well stand before do: loads of weights, past
// barriers as well where they go into a thread's own memory.
// A kernel whose next launch is dependent lets it begin first of all: its blocks get what room the
// others leave, which by then are all there. Why here: the kernel's statements are those that
// threads run, and its buffers still have names.
#pragma once

#include "loop/pass/pass.h"

namespace tenon {

Module OrderLaunches(const Module& module, const PassContext& context);

}  // namespace tenon
