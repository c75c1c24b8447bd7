// What regions of control flow capture: trailing inputs of a node and, in the same order, of each
// of its regions (graph.h).
#pragma once

#include "graph/graph.h"

namespace tenon::graph {

/// How many of the inputs of a control-flow node are its own; those captured follow.
size_t OwnInputs(const Node& n);

/// The input of the region that stands for the node's captured operand `k`, counted from 0.
ValueId CapturedInput(const Node& n, const Graph& region, size_t k);

/// What no region reads is not captured any more.
void DropUnreadCaptures(Node& n);

}  // namespace tenon::graph
