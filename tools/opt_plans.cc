#include "opt_plans.h"

#include "graph/lower/lower_group.h"
#include "plan/region.h"
#include "plan/space.h"
#include "support/strings.h"

namespace tenon {

Expected<std::string> SpaceText(const graph::Graph& g, const std::string& node,
                                const graph::GraphPassContext& context, bool prices, bool json) {
  std::vector<graph::NodeId> nodes = graph::KernelNodes(g);
  if (!node.empty()) {
    TN_ASSIGN_OR_RETURN(const graph::NodeId one, plan::FindKernel(g, node));
    nodes = {one};
  }
  return (json ? plan::SpacesJson : plan::SpacesText)(g, nodes, context, prices);
}

Expected<graph::Graph> WithPointText(const graph::Graph& g, const std::string& text,
                                     const graph::GraphPassContext& context) {
  TN_ASSIGN_OR_RETURN(const plan::NamedPoint point, plan::NamedPoint::Parse(text));
  TN_ASSIGN_OR_RETURN(plan::PlannedNode planned, plan::WithPoint(g, point, context));
  return std::move(planned.graph);
}

Expected<Module> LowerText(const graph::Graph& g, const std::string& node, const Machine& machine) {
  TN_ASSIGN_OR_RETURN(const graph::NodeId id, plan::FindKernel(g, node));
  return graph::LowerGroup(g, id, machine);
}

}  // namespace tenon
