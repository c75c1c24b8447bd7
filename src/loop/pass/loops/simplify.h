// simplify: expressions in their shortest form, and no statement that does nothing.
//
// Needs: nothing. Ensures: every expression is simplified under what holds where it stands; loops
// of one iteration are their body, loops of none, branches never taken, asserts that hold, unused
// pure lets, unused allocations and empty statements are gone; lets of a constant or a variable are
// put in. Idempotent. Where: after every pass that puts expressions together (lower_blocks,
// flatten_storage, unroll, make_packed).
#pragma once

#include "loop/pass/pass.h"

namespace tenon {

Module SimplifyLoops(const Module& module, const PassContext& context);

}  // namespace tenon
