// The schedule of a reduction along memory.
#pragma once

#include <string>

#include "cost/machine.h"
#include "schedule/schedule.h"

namespace tenon::ops {

/// A reduction whose innermost loop runs along what it reads, on a machine without threads that run
/// together: a few vectors of partial results for each of its results, and of a long row parts,
/// each of which is reduced by itself, in parallel with the others. So additions wait for each
/// other no longer, and of n equal numbers about log n roundings add up instead of n. False where
/// it is none, or what is reduced does not fill two vectors; then nothing has changed.
bool ScheduleReduction(Schedule& s, const Machine& machine, const std::string& block);

}  // namespace tenon::ops
