#include "graph/pass/pass.h"

#include <algorithm>

namespace tenon::graph {

Graph RunWithRegions(const Graph& g, const GraphPassContext& context, GraphPassFn pass) {
  const bool plain =
      std::none_of(g.nodes.begin(), g.nodes.end(), [](const Node& n) { return IsControl(n.op); });
  if (plain) return pass(g, context);
  Graph inside = g;
  for (Node& n : inside.nodes) {
    if (!IsControl(n.op)) continue;
    for (std::shared_ptr<const Graph>& region : n.regions)
      region = std::make_shared<const Graph>(RunWithRegions(*region, context, pass));
  }
  return pass(inside, context);
}

#define TN_GRAPH_PASS(Function, name, doc) Graph Function(const Graph&, const GraphPassContext&);
#include "graph/pass/passes.def"
#undef TN_GRAPH_PASS

const std::vector<GraphPassInfo>& GraphPasses() {
  static const std::vector<GraphPassInfo> kPasses = {
#define TN_GRAPH_PASS(Function, name, doc) {#name, OnRegionsToo<Function>, doc},
#include "graph/pass/passes.def"
#undef TN_GRAPH_PASS
  };
  return kPasses;
}

const GraphPassInfo* FindGraphPass(std::string_view name) {
  for (const GraphPassInfo& p : GraphPasses()) {
    if (name == p.name) return &p;
  }
  return nullptr;
}

}  // namespace tenon::graph
