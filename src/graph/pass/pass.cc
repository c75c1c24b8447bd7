#include "graph/pass/pass.h"

#include <algorithm>

#include "graph/pass/common_subexpressions.h"
#include "graph/pass/crop_conv.h"
#include "graph/pass/dead_code.h"
#include "graph/pass/decompose_batch_norm.h"
#include "graph/pass/fold_into_conv.h"
#include "graph/pass/match_signs.h"
#include "graph/pass/raise_attention.h"
#include "graph/pass/raise_gelu.h"
#include "graph/pass/raise_hard_sigmoid.h"
#include "graph/pass/raise_hard_swish.h"
#include "graph/pass/raise_layer_norm.h"
#include "graph/pass/raise_softmax.h"
#include "graph/pass/simplify_views.h"

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
