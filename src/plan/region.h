// A node of a fused graph as what its kernel computes.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace tenon::graph {

/// The body of a `fused` node, or any other node as a region of its own, in which one-element
/// constants are built. `operands` gets the outer value of each region input.
Graph RegionOf(const Graph& g, NodeId id, std::vector<ValueId>* operands);

/// Constants of one element that the region reads become constants of the region.
void EmbedScalars(const Graph& g, Graph* region, std::vector<ValueId>* operands);

}  // namespace tenon::graph
