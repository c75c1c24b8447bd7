#include "graph/pass/merge_products.h"

#include <algorithm>
#include <optional>

#include "graph/edit.h"
#include "graph/pass/constants.h"
#include "graph/pass/rewrite.h"

namespace tenon::graph {

namespace {

// x · w + bias, and the views through which it is read.
struct Projection {
  ValueId x = kNoValue, w = kNoValue, bias = kNoValue;
  bool trans = false;
  int64_t columns = 0;
  std::vector<NodeId> views;  // from the product on

  bool GoesWith(const Projection& other) const { return x == other.x && trans == other.trans; }
};

bool IsView(OpKind op) {
  return op == OpKind::kReshape || op == OpKind::kTranspose || op == OpKind::kSlice;
}

class Merger {
 public:
  explicit Merger(const Graph& g) : uses_(UseCounts(g)), constant_(ConstantValues(g)) {}

  // A rule of Rewrite.
  Expected<ValueId> Merge(Builder& b, NodeId id) const {
    const Node n = b.graph().node(id);
    if (n.op != OpKind::kAttention) return kNoValue;
    std::vector<std::optional<Projection>> read;
    for (size_t i = 0; i < 3; ++i) read.push_back(Read(b.graph(), n.inputs[i]));
    // All three, or keys and values alone.
    std::vector<size_t> together;
    for (size_t i = 0; i < 3; ++i) {
      if (read[i] && read[2] && read[i]->GoesWith(*read[2])) together.push_back(i);
    }
    if (together.size() < 2) return kNoValue;
    std::vector<Projection> parts;
    for (size_t i : together) parts.push_back(*read[i]);
    TN_ASSIGN_OR_RETURN(const ValueId all, Together(b, parts, n.name));
    Node merged = n;
    int64_t start = 0;
    for (size_t i : together) {
      TN_ASSIGN_OR_RETURN(merged.inputs[i], Part(b, all, start, *read[i], n.name));
      start += read[i]->columns;
    }
    return b.Add(OpKind::kAttention, merged.inputs, n.name, n.attrs, n.exprs);
  }

 private:
  bool IsOnlyHere(ValueId v) const {
    return static_cast<size_t>(v) < uses_.size() && uses_[static_cast<size_t>(v)] == 1;
  }
  bool IsConstant(ValueId v) const {
    return static_cast<size_t>(v) < constant_.size() && constant_[static_cast<size_t>(v)];
  }

  std::optional<Projection> Read(const Graph& g, ValueId v) const {
    Projection p;
    for (;;) {
      const NodeId at = g.value(v).producer;
      if (at == kNoNode || !IsOnlyHere(v)) return std::nullopt;
      const Node& n = g.node(at);
      if (n.op == OpKind::kMatMul) return OfProduct(g, n, std::move(p));
      if (n.op == OpKind::kAdd && p.bias == kNoValue) {
        const size_t product = g.type(n.inputs[0]).rank() == 1 ? 1 : 0;
        p.bias = n.inputs[1 - product];
        v = n.inputs[product];
        if (g.type(p.bias).rank() != 1) return std::nullopt;
      } else if (IsView(n.op) && p.bias == kNoValue) {
        p.views.insert(p.views.begin(), at);
        v = n.inputs[0];
      } else {
        return std::nullopt;
      }
    }
  }

  std::optional<Projection> OfProduct(const Graph& g, const Node& n, Projection p) const {
    const TensorType& w = g.type(n.inputs[1]);
    const auto dims = w.StaticDims();
    if (!dims || dims->size() != 2 || !IsConstant(n.inputs[1]) ||
        n.attrs.Get<bool>("trans_a", false) || !n.attrs.GetString("result").empty() ||
        !n.attrs.GetString("accumulator").empty()) {
      return std::nullopt;
    }
    p.x = n.inputs[0];
    p.w = n.inputs[1];
    p.trans = n.attrs.Get<bool>("trans_b", false);
    p.columns = (*dims)[p.trans ? 0 : 1];
    if (p.bias != kNoValue && !StructuralEqual(g.type(p.bias).dims[0], IndexConst(p.columns)))
      return std::nullopt;
    return p;
  }

  static Expected<ValueId> Together(Builder& b, const std::vector<Projection>& parts,
                                    const std::string& name) {
    std::vector<ValueId> matrices, biases;
    const DType type = b.type(parts[0].x).dtype;
    const bool biased = std::any_of(parts.begin(), parts.end(),
                                    [](const Projection& p) { return p.bias != kNoValue; });
    for (const Projection& p : parts) {
      matrices.push_back(p.w);
      if (!biased) continue;
      biases.push_back(p.bias);
      if (p.bias != kNoValue) continue;
      TN_ASSIGN_OR_RETURN(biases.back(), b.Add(OpKind::kExpand, {b.Scalar(type, 0)}, name, {},
                                               {{"shape", {IndexConst(p.columns)}}}));
    }
    const bool trans = parts[0].trans;
    TN_ASSIGN_OR_RETURN(const ValueId w,
                        b.Add(OpKind::kConcat, matrices, name, {{"axis", int64_t{trans ? 0 : 1}}}));
    TN_ASSIGN_OR_RETURN(ValueId all,
                        b.Add(OpKind::kMatMul, {parts[0].x, w}, name, {{"trans_b", trans}}));
    if (!biased) return all;
    TN_ASSIGN_OR_RETURN(const ValueId bias,
                        b.Add(OpKind::kConcat, biases, name, {{"axis", int64_t{0}}}));
    return b.Add(OpKind::kAdd, {all, bias}, name);
  }

  // The columns of one projection, seen through its views.
  static Expected<ValueId> Part(Builder& b, ValueId all, int64_t start, const Projection& p,
                                const std::string& name) {
    std::vector<Expr> sizes = b.type(all).dims;
    std::vector<Expr> starts(sizes.size(), IndexConst(0));
    starts.back() = IndexConst(start);
    sizes.back() = IndexConst(p.columns);
    TN_ASSIGN_OR_RETURN(ValueId v, b.Add(OpKind::kSlice, {all}, name,
                                         {{"steps", std::vector<int64_t>(sizes.size(), 1)}},
                                         {{"starts", starts}, {"sizes", sizes}}));
    for (NodeId view : p.views) {
      const Node n = b.graph().node(view);
      TN_ASSIGN_OR_RETURN(v, b.Add(n.op, {v}, n.name, n.attrs, n.exprs));
    }
    return v;
  }

  const std::vector<int32_t> uses_;
  const std::vector<bool> constant_;
};

}  // namespace

Graph MergeProducts(const Graph& g, const GraphPassContext& context) {
  if (context.machine->warp == 0) return g;
  const Merger merger(g);
  return Rewrite(g, [&](Builder& b, NodeId id) { return merger.Merge(b, id); });
}

}  // namespace tenon::graph
