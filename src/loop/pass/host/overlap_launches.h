// overlap_launches: launches of a host function on a device begin while the one before them ends.
//
// Needs: host functions and the kernels that they launch, after split_launches. Ensures: where the
// device can (Ability::kDependentLaunches), or one of those that code is made for, a kernel that is
// launched behind another one awaits every buffer that is not, in each of its launches, constant or
// an input of the host function (kAwaitsAttr). So it may read weights and the caller's tensors
// while the launch before ends, and whatever it touches else is touched when all launches before
// are done: each of them waited in the same way. Inputs are awaited where the first launch of all
// is not one that begins behind all that the caller has queued: where branches choose it, or its
// kernel is launched elsewhere behind another. A kernel behind which nothing but short work is
// launched lets that begin at once (kPrecedesAttr). What the host function launches first waits for
// all that its caller has queued, and behind its last launch nothing begins early, where no other
// launch is of the same kernel. Kernels that asked for an order themselves, or whose blocks meet,
// stay. Why here: kernels are single launches now, and still have their schedules.
#pragma once

#include "loop/pass/pass.h"

namespace tenon {

Module OverlapLaunches(const Module& module, const PassContext& context);

}  // namespace tenon
