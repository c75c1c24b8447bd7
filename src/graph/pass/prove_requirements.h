// prove_requirements: drops checks of indices that hold for every call.
//
// Needs: nothing. Ensures: a `require` whose elements are inside its range, as far as intervals
// show it (positions, broadcast constants, clipped values), is gone; its readers read what it
// checked. So are all of a graph for a device, where nobody checks: the host would have to wait.
// Why here: after common_subexpressions, on single operators, before the kernels of checks are
// fused.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Graph ProveRequirements(const Graph& g, const GraphPassContext& context);

}  // namespace tenon::graph
