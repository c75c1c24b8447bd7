// combine_threads: the parts of a reduction that threads make are combined.
//
// Needs: compact_buffers has placed what blocks write; a loop over a threadIdx axis may run over
// the reduction of a block (loop/thread_reduction.h). Ensures: none does. Each thread reduces its
// part in memory of its own; the parts meet in shared memory, where fewer and fewer threads take
// those of several others, until the first has all. What comes first in the order of the loops
// stays first where the combiner asks for it. The result is stored by the first thread, by those of
// the block's `store_predicate`, or, in a thread's own memory, by each. Errors: what
// ThreadReductionOf refuses.
// Run serially the function gives its answer before and after. Why here: the block still says what
// it combines; barriers come later, where all that threads exchange needs them.
#pragma once

#include "loop/pass/pass.h"

namespace tenon {

Module CombineThreads(const Module& module, const PassContext& context);

}  // namespace tenon
