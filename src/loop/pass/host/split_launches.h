// split_launches: a launch of a kernel that needs several becomes several.
//
// Needs: scheduled kernels, whose threads are not bound yet, and the host functions that launch
// them. Ensures: every kernel that a host function launches on a device is one launch. One with
// several phases (split_kernel.h) becomes the kernels K_0, K_1, …; its launches become launches of
// these, in order, with memory between them that the host function plans. Kernels say what their
// launches ask for (cooperative, …); one called `main` or `kernel`, names that languages of devices
// keep for themselves, becomes main_kernel. Why here: what is done between loops bound to threads
// shows in the schedule, and later passes know one launch for each kernel.
#pragma once

#include "loop/pass/pass.h"

namespace tenon {

Module SplitLaunches(const Module& module, const PassContext& context);

}  // namespace tenon
