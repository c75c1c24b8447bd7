// The schedule of reductions whose operand is a result, too.
#pragma once

#include "cost/machine.h"
#include "ops/scheduling.h"

namespace tenon::ops {

/// A function that computes a tensor (its block is marked kMove), stores it, and reduces it along
/// some axes: threads hold the elements of a row, store them and reduce them, in one launch. False
/// where it is none; then nothing has changed.
bool ScheduleHeldRows(Schedule& s, const Parts& parts, const Machine& machine);

}  // namespace tenon::ops
