// lower_team: the body of a host function as every worker of a team runs it.
//
// Needs: plan_storage (values have their places in the arena; kernels, or their declarations, carry
// what they do). Ensures: no launch on the host is left: a launch is a call of the kernel by every
// worker, each doing its part. What the host function does itself (stores, copies, calls of C) is
// done by worker 0. `sync team` stands before a piece of work that touches bytes which another,
// since the last barrier, wrote, or that writes bytes which another read; bytes are those of the
// arena, so values that share memory are seen to. Two pieces of work that only worker 0 does need
// no barrier between them. The host function of a device is one thread's and stays as it is. The
// end of the function needs none: the fork's join is one. Attribute max_team becomes 1 where no
// kernel has a parallel loop, and where by the cost model (attribute `alone` of launches: their
// time on one worker) one worker is done with everything while a team would only wait for each
// other, so that such a function never wakes another worker; team_width is the largest of the
// kernels' (loop/workspace.h), and 1 at those sizes where one worker is quicker. Why here: after
// every placement in memory, before make_packed fixes the signature.
#pragma once

#include "loop/pass/pass.h"

namespace tenon {

Module LowerTeam(const Module& module, const PassContext& context);

}  // namespace tenon
