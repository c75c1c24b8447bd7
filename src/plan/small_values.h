// Values that cost less to compute again than a launch does.
#pragma once

#include <vector>

#include "cost/machine.h"
#include "graph/graph.h"

namespace tenon::graph {

/// Nodes that will be one kernel, with the seed first. `apart`: nothing is asked of it, as it runs
/// on the host or is a function of the user's.
struct NodeGroup {
  NodeId seed;
  std::vector<NodeId> nodes;
};

/// Whether it is made of element operators alone, on the device.
bool IsElements(const Graph& g, const NodeGroup& group);

/// Whether the seed's algorithms take this operand as something to compute: reductions do, and
/// products of so few rows that their other factor is what takes the time.
bool ComputesOperand(const Graph& g, NodeId seed, size_t input);

/// By value: where each reader computes it again, because a launch of its own would take longer
/// than all of that, true. Such are results of groups of element operators that nobody else needs.
/// `group_of`: by node, a number of `groups`. None where threads do not run together.
std::vector<bool> SmallValues(const Graph& g, const std::vector<NodeGroup>& groups,
                              const std::vector<int>& group_of, const Machine& machine);

/// Adds to the nodes of a kernel, in their order, what is left to them whole, operands of an anchor
/// among it. `small`: of SmallValues.
void AddSmallValues(const Graph& g, const std::vector<bool>& small,
                    const std::vector<NodeGroup>& groups, const std::vector<int>& group_of,
                    std::vector<NodeId>* nodes);

}  // namespace tenon::graph
