// vectorize: vectorized loops become vector operations.
//
// Needs: flat accesses (flatten_storage), so that an index which is affine in the loop variable is
// a ramp. Ensures: no vectorized loop is left. The variable becomes the lanes min, min+1, …;
// scalars that do not depend on it stay scalars, others become vectors; an `if` on the lane becomes
// masks of loads and stores (the untaken side of a Select masks its loads too); `x[i] = x[i] op
// f(lane)` with one place for all lanes becomes a reduce_add/max/min, whose order of additions the
// reduce variable permits; buffers made inside get one place per lane. An innermost loop goes
// first. A loop that has no vector form (its extent is not constant or above
// PassContext::max_lanes, it calls, it synchronises, an inner loop's range depends on the lane)
// becomes serial, and a remark says why. Why before unroll: one copy of the body to work on;
// unrolling afterwards copies finished vector code.
#pragma once

#include "loop/pass/pass.h"

namespace tenon {

Module Vectorize(const Module& module, const PassContext& context);

}  // namespace tenon
