// Sums that are added up again by each kernel that needs them, where that is less than a launch.
#pragma once

#include <functional>
#include <vector>

#include "cost/machine.h"
#include "graph/graph.h"
#include "plan/small_values.h"

namespace tenon::graph {

/// Seconds of the kernel that a group would be, with what is left to it as `small` says then.
using SecondsOfGroup = std::function<double(const NodeGroup&)>;

/// Marks results of groups that add up in `small` (of SmallValues, by value), where all their
/// readers can do so themselves and take no longer for it than this launch. `seconds` is asked
/// while `small` has both answers in turn.
void LeaveSmallSums(const Graph& g, const std::vector<NodeGroup>& groups,
                    const std::vector<int>& group_of, const Machine& machine,
                    const SecondsOfGroup& seconds, std::vector<bool>* small);

}  // namespace tenon::graph
