#include "graph/lower/prepare_plan.h"

#include "graph/edit.h"
#include "plan/plan_groups.h"
#include "plan/region.h"
#include "plan/relayout.h"

namespace tenon::graph {

namespace {

// A result of element operators, which can be stored in any layout at once.
bool MayBeStoredAsRead(const Graph& g, ValueId v) {
  const NodeId producer = g.value(v).producer;
  if (producer == kNoNode || IsControl(g.node(producer).op) || g.type(v).layout) return false;
  return GroupOf(g, producer).anchor == kNoNode;
}

void StoreInLayout(Graph* g, ValueId v, const Layout& layout) {
  g->value(v).type.tensor().layout = layout;
  Node& node = g->node(g->value(v).producer);
  if (node.op != OpKind::kFused) return;
  auto region = std::make_shared<Graph>(*node.regions.at(0));
  const ValueId inner = region->outputs.at(static_cast<size_t>(g->value(v).output));
  region->value(inner).type.tensor().layout = layout;
  node.regions = {region};
}

// Writes what only a relayout reads as that would have it.
void FoldRelayouts(Graph* g) {
  std::vector<int32_t> uses = UseCounts(*g);
  for (Node& n : g->nodes) {
    if (!IsRelayout(*g, n)) continue;
    const ValueId from = n.inputs[0], to = n.outputs[0];
    if (uses[static_cast<size_t>(from)] != 1 || !MayBeStoredAsRead(*g, from)) continue;
    StoreInLayout(g, from, g->type(to).layout);
    g->value(from).name = g->value(to).name;
    ReplaceAllUses(*g, to, from);
    uses[static_cast<size_t>(from)] = uses[static_cast<size_t>(to)];
  }
  Compact(*g);
}

}  // namespace

Graph PlanPrepare(const Graph& slice, const Machine& machine) {
  Graph g = slice;
  FoldRelayouts(&g);
  return PlanGroups(g, {&machine});
}

}  // namespace tenon::graph
