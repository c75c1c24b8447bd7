// A node of a fused graph as what its kernel computes.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"

namespace tenon::graph {

/// The body of a `fused` node, or any other node as a region of its own, in which one-element
/// constants are built. `operands` gets the outer value of each region input.
Graph RegionOf(const Graph& g, NodeId id, std::vector<ValueId>* operands);

/// Constants of one element that the region reads become constants of the region.
void EmbedScalars(const Graph& g, Graph* region, std::vector<ValueId>* operands);

/// A node as a kernel by itself.
struct Group {
  NodeId node = kNoNode;
  Graph region;
  std::vector<ValueId> operands;  // of the region's inputs, outside
  NodeId anchor = kNoNode;        // of the region

  /// The outer value of one at the region's border; kNoValue for those inside.
  ValueId OuterOf(const Graph& g, ValueId inner) const;
};
Group GroupOf(const Graph& g, NodeId id);

/// The nodes that become kernels of the network: on tensors, not control flow, and not known from
/// constants alone.
std::vector<NodeId> KernelNodes(const Graph& g);

/// Whether the node is a function of the user's own (`call`), by itself or with its scalars in a
/// region: it knows no layouts, and has the types that it has.
bool CallsFunction(const Node& node);

/// What a region computes, as text: equal for regions that compute the same by the same operators
/// on values of the same types, whatever they are called and however they lie.
std::string RegionKey(const Graph& region);

/// Gives a node the plan and other operands in the place of the group's; the types at the border of
/// a region follow those of the values outside.
void ApplyPlan(Graph* g, const Group& group, const std::vector<ValueId>& operands, Plan plan);

}  // namespace tenon::graph
