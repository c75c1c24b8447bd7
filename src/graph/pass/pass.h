// What all passes over graphs have in common. A pass is a free function from graph to graph, in a
// file pair of its name. It never fails: what it cannot improve stays as it is. It looks at one
// graph and leaves regions alone; what runs it (GraphPassInfo::run) sees to the regions of control
// flow, innermost first. Inputs and outputs of a region keep their number, order and types.
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

/// The pass on the regions of control flow (no deeper than Limits::kRegionDepth), innermost first,
/// and then on the graph.
Graph RunWithRegions(const Graph& g, const GraphPassContext& context, GraphPassFn pass);
template <GraphPassFn pass>
Graph OnRegionsToo(const Graph& g, const GraphPassContext& context) {
  return RunWithRegions(g, context, pass);
}

/// Every pass, in the order of passes.def.
const std::vector<GraphPassInfo>& GraphPasses();
/// Null when there is none of that name.
const GraphPassInfo* FindGraphPass(std::string_view name);

}  // namespace tenon::graph
