#include "graph/pass/fold_into_conv.h"

#include <algorithm>
#include <optional>

#include "graph/edit.h"
#include "graph/pass/constants.h"
#include "graph/pass/rewrite.h"

namespace tenon::graph {

namespace {

// A product or sum with a constant per channel.
struct Step {
  ValueId constant;
  bool product;
};

// What is asked about values is what held when the pass began: new values are never asked about
// (rewrite.h), so constant_ and uses_ have all that are.
class Folder {
 public:
  explicit Folder(const Graph& g) : constant_(ConstantValues(g)), uses_(UseCounts(g)) {}

  // From the end of a chain of products and sums back to a convolution, then forward into its
  // weights.
  Expected<ValueId> Fold(Builder& b, NodeId end) const {
    const Graph& g = b.graph();
    std::vector<Step> steps;
    ValueId v = g.node(end).outputs[0];
    while (std::optional<ValueId> before = StepBack(g, v, &steps)) v = *before;
    const NodeId id = g.value(v).producer;
    if (steps.empty() || id == kNoNode || !IsFoldable(g, g.node(id))) return kNoValue;
    Node conv = g.node(id);
    if (conv.inputs.size() < 3) conv.inputs.push_back(kNoValue);
    const Expr channels = g.type(v).dims[1];
    for (size_t i = steps.size(); i-- > 0;) {
      TN_ASSIGN_OR_RETURN(ValueId k, PerChannel(b, steps[i].constant, channels));
      TN_RETURN_IF_ERROR(Apply(b, k, steps[i].product, &conv));
    }
    if (conv.inputs[2] == kNoValue) conv.inputs.pop_back();
    return b.Add(OpKind::kConv, conv.inputs, conv.name, conv.attrs);
  }

 private:
  bool IsConstant(ValueId v) const { return v == kNoValue || constant_[static_cast<size_t>(v)]; }

  // One product or sum back along v's only way here, if v is one.
  std::optional<ValueId> StepBack(const Graph& g, ValueId v, std::vector<Step>* steps) const {
    const NodeId id = g.value(v).producer;
    if (id == kNoNode || steps->size() >= kMaxSteps) return std::nullopt;
    const Node& n = g.node(id);
    if (n.op != OpKind::kMul && n.op != OpKind::kAdd) return std::nullopt;
    const bool first = IsConstant(n.inputs[0]);
    const ValueId x = n.inputs[first ? 1 : 0], k = n.inputs[first ? 0 : 1];
    const bool only_reader = uses_[static_cast<size_t>(x)] == 1;
    if (!only_reader || IsConstant(x) || !IsConstant(k)) return std::nullopt;
    if (!(g.type(x) == g.type(v)) || !IsPerChannel(g, k, g.type(x))) return std::nullopt;
    steps->push_back({k, n.op == OpKind::kMul});
    return x;
  }

  bool IsFoldable(const Graph& g, const Node& n) const {
    return n.op == OpKind::kConv && IsConstant(n.inputs[1]) &&
           (n.inputs.size() < 3 || IsConstant(n.inputs[2]));
  }

  // Along no axis of x but the channel's, which is 1.
  static bool IsPerChannel(const Graph& g, ValueId k, const TensorType& x) {
    const std::vector<Expr>& dims = g.type(k).dims;
    const int axis =
        static_cast<int>(dims.size()) - x.rank() + 1;  // the channel's axis in k's dims
    for (int i = 0; i < static_cast<int>(dims.size()); ++i) {
      const Expr& d = dims[static_cast<size_t>(i)];
      if (!IsOne(d) && (i != axis || !StructuralEqual(d, x.dims[1]))) return false;
    }
    return x.rank() > 2;
  }

  // k as [channels].
  static Expected<ValueId> PerChannel(Builder& b, ValueId k, const Expr& channels) {
    const std::string name = b.graph().value(k).name + ".channels";
    const std::vector<Expr>& dims = b.type(k).dims;
    const bool one = std::all_of(dims.begin(), dims.end(), IsOne);
    ExprAttrs flat, wide;
    flat["shape"] = {one ? IndexConst(1) : channels};
    wide["shape"] = {channels};
    TN_ASSIGN_OR_RETURN(ValueId v, b.Add(OpKind::kReshape, {k}, name, {}, flat));
    return b.Add(OpKind::kExpand, {v}, name, {}, wide);
  }

  static Status Apply(Builder& b, ValueId k, bool product, Node* conv) {
    ValueId &w = conv->inputs[1], &bias = conv->inputs[2];
    if (product) {
      ExprAttrs shape;
      shape["shape"] = {b.type(k).dims[0]};
      shape["shape"].resize(b.type(w).dims.size(), IndexConst(1));
      TN_ASSIGN_OR_RETURN(ValueId column,
                          b.Add(OpKind::kReshape, {k}, conv->name + ".factor", {}, shape));
      TN_ASSIGN_OR_RETURN(w, b.Add(OpKind::kMul, {w, column}, conv->name + ".w"));
    }
    if (bias == kNoValue) {
      if (!product) bias = k;
      return Ok();
    }
    TN_ASSIGN_OR_RETURN(bias,
                        b.Add(product ? OpKind::kMul : OpKind::kAdd, {bias, k}, conv->name + ".b"));
    return Ok();
  }

  static constexpr size_t kMaxSteps = 16;
  std::vector<bool> constant_;
  std::vector<int32_t> uses_;
};

}  // namespace

Graph FoldIntoConv(const Graph& g, const GraphPassContext& context) {
  const Folder folder(g);
  return Rewrite(g, [&](Builder& b, NodeId id) { return folder.Fold(b, id); });
}

}  // namespace tenon::graph
