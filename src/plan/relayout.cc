#include "plan/relayout.h"

#include <algorithm>

#include "cost/estimate.h"
#include "graph/dims.h"
#include "graph/pass/constants.h"
#include "ir/print.h"

namespace tenon::graph {

Relayouts::Relayouts(Graph* g, const Machine& machine)
    : g_(g), machine_(machine), constant_(ConstantValues(*g)) {}

double Relayouts::Seconds(ValueId v) const {
  const TensorType& type = g_->type(v);
  int64_t bytes = type.dtype.Bytes();
  for (const Expr& d : type.dims) bytes *= TypicalSize(*g_, d);
  return RelayoutSeconds(bytes, machine_);
}

ValueId Relayouts::Of(ValueId v, const Layout& layout) {
  const std::string key = layout ? ToString(layout) : "";
  auto [it, fresh] = known_.emplace(std::pair(v, key), kNoValue);
  if (!fresh) return it->second;
  TensorType type = g_->type(v);
  type.layout = layout;
  Node n;
  n.op = OpKind::kReshape;
  n.name = g_->value(v).name + ".arranged";
  n.inputs = {v};
  n.exprs["shape"] = type.dims;
  if (!IsConstant(v)) {
    n.plan = std::make_shared<const Plan>(
        ops::MakePlan(*ops::Algorithms().back(), ops::Space(), {}, Seconds(v)));
  }
  it->second = g_->node(g_->AddNode(std::move(n), {type})).outputs[0];
  return it->second;
}

bool IsRelayout(const Graph& g, const Node& node) {
  if (node.op != OpKind::kReshape) return false;
  const std::vector<Expr>& before = g.type(node.inputs[0]).dims;
  const std::vector<Expr>& after = g.type(node.outputs[0]).dims;
  return std::equal(before.begin(), before.end(), after.begin(), after.end(), ProveEqual);
}

ValueId Relayouts::Origin(ValueId v) const {
  for (;;) {
    const NodeId producer = g_->value(v).producer;
    if (producer == kNoNode || !IsRelayout(*g_, g_->node(producer))) return v;
    v = g_->node(producer).inputs[0];
  }
}

ValueId Relayouts::Meeting(ValueId v, const ops::Want& want, const StorageDesc* border) {
  const std::vector<Expr> dims = g_->type(v).dims;
  const ValueId origin = Origin(v);
  for (ValueId candidate : {v, origin}) {
    const auto stored = ReadLayout(g_->type(candidate).layout, dims);
    if (stored && want.IsMetBy(*stored, dims)) return candidate;
  }
  StorageDesc desc = want.desc;
  if (border && !desc.size.empty() && border->padding == desc.padding) {
    desc.begin = border->begin;
    desc.size = border->size;
  }
  return Of(origin, MakeLayout(desc, dims));
}

}  // namespace tenon::graph
