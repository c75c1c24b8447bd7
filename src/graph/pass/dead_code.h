// dead_code: drops nodes and values that no output needs.
//
// Needs: nothing. Ensures: every node reaches an output; ids are dense. Graph inputs stay.
// Where: after every pass that replaces values, since those leave the old producers behind.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Graph EliminateDeadCode(const Graph& g, const GraphPassContext& context);

}  // namespace tenon::graph
