#include "plan/relayout.h"

#include <algorithm>

#include "cost/estimate.h"
#include "graph/dims.h"
#include "graph/pass/constants.h"
#include "graph/stored_view.h"
#include "ir/print.h"

namespace tenon::graph {

Graph RelayoutKernel(const TensorType& from, const Layout& to, const std::string& name) {
  Graph g;
  g.name = name;
  const auto add = [&](ValueId v, const std::string& node_name, const Layout& layout) {
    TensorType type = from;
    type.layout = layout;
    Node n;
    n.op = OpKind::kReshape;
    n.name = node_name;
    n.inputs = {v};
    n.exprs["shape"] = from.dims;
    return g.node(g.AddNode(std::move(n), {type})).outputs[0];
  };
  TensorType plain = from;
  plain.layout = nullptr;
  const ValueId operand = add(g.AddInput("x0", plain), "operand0", from.layout);
  g.AddOutput("y0", add(add(operand, name, to), "result0", nullptr));
  return g;
}

double RelayoutSecondsOf(const Graph& g, const TensorType& type, const Machine& machine) {
  int64_t bytes = type.dtype.Bytes();
  for (const Expr& d : type.dims) bytes *= TypicalSize(g, d);
  return RelayoutSeconds(bytes, machine);
}

Relayouts::Relayouts(Graph* g, const Machine& machine, const plan::Prices* prices)
    : g_(g), machine_(machine), prices_(prices), constant_(ConstantValues(*g)) {}

double Relayouts::Seconds(ValueId v, const Layout& from, const Layout& to) const {
  TensorType type = g_->type(v);
  const double predicted = RelayoutSecondsOf(*g_, type, machine_);
  if (!prices_ || !type.StaticDims()) return predicted;
  type.layout = from;
  return prices_->Relayout(type, to, predicted);
}

ValueId Relayouts::Of(ValueId v, const Layout& layout) {
  const std::string key = layout ? ToString(layout) : "";
  auto [it, fresh] = known_.emplace(std::pair(v, key), kNoValue);
  if (!fresh) return it->second;
  TensorType type = g_->type(v);
  type.layout = layout;
  Node n;
  const NodeId producer = g_->value(v).producer;
  if (IsConstant(v) && producer != kNoNode && g_->node(producer).op == OpKind::kTranspose &&
      IsStoredView(g_->node(producer), g_->type(g_->node(producer).inputs[0]), type)) {
    // A known matrix that is transposed, and stored as it was before, is that memory.
    n = g_->node(producer);
    it->second = g_->node(g_->AddNode(std::move(n), {type})).outputs[0];
    return it->second;
  }
  n.op = OpKind::kReshape;
  n.name = g_->value(v).name + ".arranged";
  n.inputs = {v};
  n.exprs["shape"] = type.dims;
  if (!IsConstant(v)) {
    n.plan = std::make_shared<const Plan>(ops::MakePlan(*ops::Algorithms().back(), ops::Space(), {},
                                                        Seconds(v, g_->type(v).layout, layout)));
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
