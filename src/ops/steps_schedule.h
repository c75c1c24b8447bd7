// The schedule of what is computed in order.
#pragma once

#include <string>

#include "ops/algorithm.h"

namespace tenon::ops {

/// A block with ordered loops, on a machine without threads that run together: those loops in the
/// middle, around them what does not depend on each other, in parallel, and inside vectors of it,
/// so that what steps leave stays in registers. Returns the name of a block that went along, the
/// only one that reads what the steps keep, or "".
std::string ScheduleSteps(Schedule& s, const Machine& machine, const std::string& block);

/// All blocks: those that change elements of what another has made (te::Scatter; kUpdates,
/// kRowUpdates, kCounts) likewise, others each by itself.
void ScheduleInOrder(Schedule& s, const Parts& parts, const Machine& machine);

}  // namespace tenon::ops
