// Which values are known before the network runs.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace tenon::graph {

/// By value: a constant, or computed from constants alone (it will be computed by `prepare`),
/// whatever sizes the graph's dims have.
std::vector<bool> ConstantValues(const Graph& g);

}  // namespace tenon::graph
