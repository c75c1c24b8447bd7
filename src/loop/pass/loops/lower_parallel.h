// lower_parallel: a kernel as one worker of a team runs it.
//
// Needs: blocks are lowered. Parallel loops have independent iterations.
// Ensures: no parallel loop is left in a kernel. A parallel loop of n iterations becomes this
// worker's part of them, [n * rank / size, n * (rank + 1) / size): contiguous and near-equal. Work
// outside parallel loops that writes memory which the team shares (parameters, `global`
// allocations) runs on worker 0 alone; what it writes to its own buffers is done by every worker
// for itself, but for a call that writes both, and what reads that. `sync team` stands between two
// pieces of work when one writes a shared buffer that the other touches, and at the end of a serial
// loop's body where that is so from one iteration to the next. A parallel loop inside a parallel
// loop is serial. The end of the kernel is the launcher's business. Parallel loops of device
// functions (which run within one worker) are serial. A kernel that writes nothing, since what it
// writes has no elements, does nothing. Why late: until here loops have their full
// ranges, which the simplifier needs; the parts' bounds are opaque to it.
#pragma once

#include "loop/pass/pass.h"

namespace tenon {

Module LowerParallel(const Module& module, const PassContext& context);

}  // namespace tenon
