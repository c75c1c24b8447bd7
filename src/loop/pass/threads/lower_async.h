// lower_async: copies that nobody waits for get their groups and waits.
//
// Needs: blocks are lowered; device functions are marked as the target's operations, among them
// asynchronous copies, which mean what any copy means. Ensures, for kernels of a GPU target: such a
// copy's writes may take effect at any time until a wait for its group (the attribute `async` says
// so, as loop/threads.h has it); every thread closes a group after each run of statements that
// copy, and waits before statements that read what was copied, until no more groups are under way
// than were closed since. How many that are is read off the versions of a pipelined loop's buffers;
// where it cannot be, all are waited for. Errors: a copy that is not known to move aligned bytes of
// global memory. Why here: loops are still those of the schedule, and bind_threads must see the
// waits, behind which other threads' copies take a barrier.
#pragma once

#include "loop/pass/pass.h"

namespace tenon {

Module LowerAsync(const Module& module, const PassContext& context);

}  // namespace tenon
