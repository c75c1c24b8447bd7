// Reductions that compute what they reduce, and give it out beside their own result.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "plan/small_values.h"

namespace tenon::graph {

/// Merges groups of element operators into the groups of the reductions that read their results
/// element for element: the nodes of the former become the latter's, and `group_of` follows. A
/// group that was merged has no nodes. `small`: what readers compute again (SmallValues). None
/// where threads do not run together.
void JoinResults(const Graph& g, const std::vector<bool>& small, const Machine& machine,
                 std::vector<NodeGroup>* groups, std::vector<int>* group_of);

}  // namespace tenon::graph
