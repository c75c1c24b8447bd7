// What all passes over graphs have in common. A pass is a free function from graph to graph, in a
// file pair of its name. It never fails: what it cannot improve stays as it is.
#pragma once

#include <string_view>
#include <vector>

#include "cost/machine.h"
#include "graph/graph.h"

namespace tenon::plan {
class Prices;
}

namespace tenon::graph {

struct GraphPassContext {
  /// What the network is compiled for; never null.
  const Machine* machine;
  /// What has been measured (plan/prices.h); null: nothing.
  const plan::Prices* prices = nullptr;
};

using GraphPassFn = Graph (*)(const Graph&, const GraphPassContext&);

struct GraphPassInfo {
  const char* name;
  GraphPassFn run;
  const char* doc;
};

/// Every pass, in the order of passes.def.
const std::vector<GraphPassInfo>& GraphPasses();
/// Null when there is none of that name.
const GraphPassInfo* FindGraphPass(std::string_view name);

}  // namespace tenon::graph
