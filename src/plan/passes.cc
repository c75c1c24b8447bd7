#include "plan/passes.h"

namespace tenon::graph {

#define TN_GRAPH_PASS(Function, name, doc) Graph Function(const Graph&, const GraphPassContext&);
#include "plan/passes.def"
#undef TN_GRAPH_PASS

const std::vector<GraphPassInfo>& PlanPasses() {
  static const std::vector<GraphPassInfo> kPasses = {
#define TN_GRAPH_PASS(Function, name, doc) {#name, OnRegionsToo<Function>, doc},
#include "plan/passes.def"
#undef TN_GRAPH_PASS
  };
  return kPasses;
}

const GraphPassInfo* FindAnyGraphPass(std::string_view name) {
  for (const GraphPassInfo& pass : PlanPasses()) {
    if (name == pass.name) return &pass;
  }
  return FindGraphPass(name);
}

}  // namespace tenon::graph
