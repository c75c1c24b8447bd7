#include "plan/split_products.h"

#include <limits>
#include <map>
#include <string>

#include "graph/pass/constants.h"
#include "graph/pass/rewrite.h"
#include "ops/split_float.h"
#include "plan/prices.h"
#include "plan/region.h"

namespace tenon::graph {

namespace {

bool IsCandidate(const Graph& g, const Node& n, const std::vector<bool>& constant) {
  if (n.op != OpKind::kMatMul || n.attrs.Get<bool>("trans_a", false) ||
      !constant[static_cast<size_t>(n.inputs[1])]) {
    return false;
  }
  const TensorType &x = g.type(n.inputs[0]), &w = g.type(n.inputs[1]);
  const DType f32 = DType::Float(32);
  return x.dtype == f32 && w.dtype == f32 && g.type(n.outputs[0]).dtype == f32 && w.rank() == 2 &&
         w.StaticDims() && AsInt(x.dims.back());
}

Attrs AttrsOf(const Node& product) {
  Attrs attrs;
  if (product.attrs.Get<bool>("trans_b", false)) attrs.Set("trans_b", true);
  return attrs;
}

// [2, …]: the high parts of a matrix and its low ones, as ops/split_float.h has them.
Expected<ValueId> Parts(Builder& b, ValueId w) {
  const std::string name = b.graph().value(w).name;  // a copy: references die with every Add
  const TensorType type = b.type(w);
  const DType f32 = DType::Float(32), bf16 = DType::BFloat16();
  const auto to = [](DType t) { return Attrs{{"to", t.ToString()}}; };
  const ValueId infinity = b.Scalar(f32, std::numeric_limits<double>::infinity());
  const ValueId zero = b.Scalar(f32, 0);
  TN_ASSIGN_OR_RETURN(const ValueId size, b.Add(OpKind::kAbs, {w}, name));
  TN_ASSIGN_OR_RETURN(const ValueId is_finite, b.Add(OpKind::kLess, {size, infinity}, name));
  TN_ASSIGN_OR_RETURN(const ValueId near,
                      b.Add(OpKind::kClip, {w}, name,
                            Attrs{{"lo", -ops::kLargestBFloat16}, {"hi", ops::kLargestBFloat16}}));
  TN_ASSIGN_OR_RETURN(const ValueId kept, b.Add(OpKind::kWhere, {is_finite, near, zero}, name));
  TN_ASSIGN_OR_RETURN(const ValueId high, b.Add(OpKind::kCast, {kept}, name + ".high", to(bf16)));
  TN_ASSIGN_OR_RETURN(const ValueId wide, b.Add(OpKind::kCast, {high}, name, to(f32)));
  TN_ASSIGN_OR_RETURN(const ValueId rest, b.Add(OpKind::kSub, {w, wide}, name));
  TN_ASSIGN_OR_RETURN(const ValueId low, b.Add(OpKind::kCast, {rest}, name + ".low", to(bf16)));
  ExprAttrs shape;
  shape["shape"] = {IndexConst(1), type.dims[0], type.dims[1]};
  TN_ASSIGN_OR_RETURN(const ValueId first, b.Add(OpKind::kReshape, {high}, name, {}, shape));
  TN_ASSIGN_OR_RETURN(const ValueId second, b.Add(OpKind::kReshape, {low}, name, {}, shape));
  return b.Add(OpKind::kConcat, {first, second}, name + ".parts", Attrs{{"axis", int64_t{0}}});
}

// A graph of one product like this one, in either form.
Graph Alone(const Graph& g, const Node& product, bool split) {
  Builder b;
  b.graph().dims = g.dims;
  TensorType w = g.type(product.inputs[1]);
  if (split) {
    w.dtype = DType::BFloat16();
    w.dims.insert(w.dims.begin(), IndexConst(2));
  }
  const ValueId x = b.Input("x", g.type(product.inputs[0])), y = b.Input("w", w);
  const auto result = split ? b.Add(OpKind::kSplitMatMul, {x, y}, "", AttrsOf(product))
                            : b.Add(OpKind::kMatMul, {x, y}, "", product.attrs);
  if (result) b.Output("y", *result);
  return std::move(b).Finish();
}

bool IsFaster(const Graph& g, const Node& product, const GraphPassContext& context) {
  const Graph split = Alone(g, product, true);
  return !split.nodes.empty() &&
         plan::BestForm({Alone(g, product, false), split}, *context.machine) == 1;
}

}  // namespace

Graph SplitProducts(const Graph& g, const GraphPassContext& context) {
  const std::vector<bool> constant = ConstantValues(g);
  std::map<std::string, bool> known;  // networks repeat themselves
  return Rewrite(g, [&](Builder& b, NodeId id) -> Expected<ValueId> {
    const Node n = b.graph().node(id);
    if (!IsCandidate(b.graph(), n, constant)) return kNoValue;
    const auto [it, is_new] = known.emplace(RegionKey(Alone(b.graph(), n, false)), false);
    if (is_new) it->second = IsFaster(b.graph(), n, context);
    if (!it->second) return kNoValue;
    TN_ASSIGN_OR_RETURN(const ValueId parts, Parts(b, n.inputs[1]));
    return b.Add(OpKind::kSplitMatMul, {n.inputs[0], parts}, n.name, AttrsOf(n));
  });
}

}  // namespace tenon::graph
