// select_intrinsics: marks the device functions that the target has an operation for.
//
// Needs: device functions as schedules left them; PassContext::target says what the machine has
// (none: nothing is marked).
// Ensures: a device function that is, statement by statement, the meaning of a row of src/intrin
// which the target's back end can write, and whose feature it has, carries attribute `intrinsic`:
// the back end writes the operation in place of a call of it. No other function carries it: what
// merely has a row's name is compiled as it stands, as are all rows for a target without the unit.
// (The feature is no condition in source that asks its compiler with #if: C, launches of CUDA.)
// Why first: later passes rewrite the bodies that are compared here.
#pragma once

#include "loop/pass/pass.h"

namespace tenon {

Module SelectIntrinsics(const Module& module, const PassContext& context);

}  // namespace tenon
