#include "graph/pass/simplify_views.h"

#include <algorithm>

#include "graph/dims.h"
#include "graph/pass/rewrite.h"
#include "graph/pass/view_chain.h"

namespace tenon::graph {

namespace {

// Views further back are not looked at: what they share is still found from there.
constexpr size_t kMaxChain = 32;

bool IsLink(const Graph& g, const Node& n) {
  return ViewChain::IsLink(n) && !g.type(n.inputs[0]).layout && !g.type(n.outputs[0]).layout;
}

// The node and the views that it reads through, first one first.
std::vector<NodeId> ChainTo(const Graph& g, NodeId end) {
  std::vector<NodeId> chain;
  for (NodeId n = end; n != kNoNode && IsLink(g, g.node(n)) && chain.size() < kMaxChain;) {
    chain.push_back(n);
    n = g.value(g.node(n).inputs[0]).producer;
  }
  std::reverse(chain.begin(), chain.end());
  return chain;
}

Expected<ValueId> Shorten(Builder& b, NodeId end) {
  const Graph& g = b.graph();
  const std::vector<NodeId> chain = ChainTo(g, end);
  // From the furthest start from which all the rest fits.
  for (size_t first = 0; first < chain.size(); ++first) {
    const ValueId source = g.node(chain[first]).inputs[0];
    ViewChain views(source, g.type(source));
    bool fits = std::none_of(g.type(source).dims.begin(), g.type(source).dims.end(), IsZero);
    for (size_t i = first; fits && i < chain.size(); ++i) {
      fits = views.Apply(g.node(chain[i]), g.type(g.node(chain[i]).outputs[0]).dims);
    }
    if (!fits) continue;
    if (views.Length() >= static_cast<int>(chain.size() - first)) return kNoValue;
    return views.Build(b, g.node(end).name);
  }
  return kNoValue;
}

// A gather of constant indices start, start + step, … is a slice, whose axis then gets the dims of
// the indices.
Expected<ValueId> SliceOfGather(Builder& b, const Node& n) {
  const TensorType x = b.type(n.inputs[0]), out = b.type(n.outputs[0]);
  std::optional<std::vector<int64_t>> indices = b.KnownInts(n.inputs[1]);
  const size_t axis = static_cast<size_t>(n.attrs.GetInt("axis"));
  const std::optional<int64_t> dim = AsInt(x.dims[axis]);
  if (!indices || indices->empty() || !dim) return kNoValue;
  for (int64_t& i : *indices) {
    if (i < -*dim || i >= *dim) return kNoValue;
    if (i < 0) i += *dim;
  }
  const int64_t step = indices->size() > 1 ? (*indices)[1] - (*indices)[0] : 1;
  if (step == 0) return kNoValue;
  for (size_t i = 1; i < indices->size(); ++i) {
    if ((*indices)[i] - (*indices)[i - 1] != step) return kNoValue;
  }
  ExprAttrs slice;
  slice["starts"] = std::vector<Expr>(x.dims.size(), IndexConst(0));
  slice["starts"][axis] = IndexConst(indices->front());
  slice["sizes"] = x.dims;
  slice["sizes"][axis] = IndexConst(static_cast<int64_t>(indices->size()));
  std::vector<int64_t> steps(x.dims.size(), 1);
  steps[axis] = step;
  TN_ASSIGN_OR_RETURN(ValueId part,
                      b.Add(OpKind::kSlice, {n.inputs[0]}, n.name, {{"steps", steps}}, slice));
  ExprAttrs shape;
  shape["shape"] = out.dims;
  return b.Add(OpKind::kReshape, {part}, n.name, {}, shape);
}

// The builder answers the operand where an operator changes nothing.
Expected<ValueId> Identity(Builder& b, const Node& n) {
  TN_ASSIGN_OR_RETURN(ValueId v, b.Add(n.op, n.inputs, n.name, n.attrs, n.exprs));
  return v == n.inputs[0] ? v : kNoValue;
}

}  // namespace

Graph SimplifyViews(const Graph& g, const GraphPassContext& context) {
  const Graph sliced = Rewrite(g, [](Builder& b, NodeId id) -> Expected<ValueId> {
    const Node n = b.graph().node(id);
    if (n.op == OpKind::kGather) return SliceOfGather(b, n);
    const bool may_go = n.op == OpKind::kCast || n.op == OpKind::kExpand || n.op == OpKind::kPad ||
                        n.op == OpKind::kConcat;
    return may_go ? Identity(b, n) : kNoValue;
  });
  return Rewrite(sliced, [](Builder& b, NodeId id) -> Expected<ValueId> { return Shorten(b, id); });
}

}  // namespace tenon::graph
