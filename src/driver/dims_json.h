// Symbolic dims as descriptions have them.
#pragma once

#include <nlohmann/json.hpp>

#include "graph/graph.h"

namespace tenon::driver {

/// [{"name", "min", "max", "step"}, …] in the graph's order.
nlohmann::ordered_json DimsJson(const graph::Graph& g);

}  // namespace tenon::driver
