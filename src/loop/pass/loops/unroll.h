// unroll: unrolled loops are written out.
//
// Needs: nothing; best after vectorize, which then works on one copy.
// Ensures: an unrolled loop with a constant extent is replaced by copies of its body, the variable
// put in; everything bound inside is made anew in each copy. Innermost loops go first. (simplify,
// next, folds the indices: register buffers then have constant ones, which is what makes them
// registers.) A loop with another extent, or one that would bring the function above
// PassContext::max_unrolled_stmts, becomes serial and a remark says so.
// Why late: code grows here, and every pass after this one pays for it.
#pragma once

#include "loop/pass/pass.h"

namespace tenon {

Module Unroll(const Module& module, const PassContext& context);

}  // namespace tenon
