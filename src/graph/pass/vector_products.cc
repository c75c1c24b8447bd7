#include "graph/pass/vector_products.h"

#include <algorithm>
#include <optional>

#include "graph/dims.h"
#include "graph/pass/constants.h"
#include "graph/pass/rewrite.h"

namespace tenon::graph {

namespace {

// Which operand is the vector, and which of the matrix's last two axes is summed over.
struct VectorProduct {
  size_t vector;
  bool along_last;
};

bool AccumulatesF32(const Graph& g, const Node& n) {
  const DType f32 = DType::Float(32);
  for (ValueId v : {n.inputs[0], n.inputs[1], n.outputs[0]}) {
    if (g.type(v).dtype != f32) return false;
  }
  const std::string accumulator = n.attrs.GetString("accumulator");
  return accumulator.empty() || accumulator == "f32";
}

std::optional<VectorProduct> FindVector(const Graph& g, const Node& n) {
  if (n.op != OpKind::kMatMul || !AccumulatesF32(g, n)) return std::nullopt;
  const bool trans_a = n.attrs.Get<bool>("trans_a", false);
  const bool trans_b = n.attrs.Get<bool>("trans_b", false);
  const std::vector<Expr>& out = g.type(n.outputs[0]).dims;
  VectorProduct product{};
  if (IsOne(out.back())) {
    product = {1, !trans_a};
  } else if (IsOne(out[out.size() - 2])) {
    product = {0, trans_b};
  } else {
    return std::nullopt;
  }
  // Places that share a matrix have a product of several rows or columns with it.
  const std::vector<Expr>& matrix = g.type(n.inputs[1 - product.vector]).dims;
  if (matrix.size() != out.size() ||
      !std::equal(out.begin(), out.end() - 2, matrix.begin(), ProveEqual)) {
    return std::nullopt;
  }
  return product;
}

// What v is, or, with the last two axes the other way round, what it was before.
ValueId BeforeTurn(const Graph& g, ValueId v, bool* along_last) {
  const NodeId made = g.value(v).producer;
  if (made == kNoNode || g.node(made).op != OpKind::kTranspose) return v;
  std::vector<int64_t> perm = g.node(made).attrs.GetInts("perm");
  if (perm.size() < 2) return v;
  std::swap(perm.back(), perm[perm.size() - 2]);
  if (!std::is_sorted(perm.begin(), perm.end())) return v;
  *along_last = !*along_last;
  return g.node(made).inputs[0];
}

}  // namespace

Graph VectorProducts(const Graph& g, const GraphPassContext& context) {
  const bool by_warps = context.machine->warp > 0;
  const std::vector<bool> constant = ConstantValues(g);
  return Rewrite(g, [&](Builder& b, NodeId id) -> Expected<ValueId> {
    const Node n = b.graph().node(id);
    std::optional<VectorProduct> product = FindVector(b.graph(), n);
    if (!product) return kNoValue;
    // Of the graph as it was: nodes that are asked about are old.
    const auto is_constant = [&](ValueId v) {
      return static_cast<size_t>(v) >= constant.size() || constant[static_cast<size_t>(v)];
    };
    ValueId matrix = n.inputs[1 - product->vector];
    const bool is_row = product->vector == 0;
    if (is_row ? by_warps || is_constant(matrix)
               : by_warps && (is_constant(matrix) || is_constant(n.inputs[1]) ||
                              n.attrs.Get<bool>("trans_a", false))) {
      return kNoValue;
    }
    matrix = BeforeTurn(b.graph(), matrix, &product->along_last);
    ValueId vector = n.inputs[product->vector];
    ExprAttrs shape;
    shape["shape"] = b.type(vector).dims;
    std::vector<Expr>& dims = shape["shape"];
    if (IsOne(dims.back()) == product->along_last) {
      std::swap(dims.back(), dims[dims.size() - 2]);
      TN_ASSIGN_OR_RETURN(vector, b.Add(OpKind::kReshape, {vector}, n.name + ".vector", {}, shape));
    }
    TN_ASSIGN_OR_RETURN(const ValueId each,
                        b.Add(OpKind::kMul, {matrix, vector}, n.name + ".each"));
    Attrs sum;
    sum.Set("kind", std::string("sum"));
    sum.Set("axes", std::vector<int64_t>{b.type(each).rank() - (product->along_last ? 1 : 2)});
    TN_ASSIGN_OR_RETURN(const ValueId summed, b.Add(OpKind::kReduce, {each}, n.name, sum));
    ExprAttrs with_one;
    with_one["shape"] = b.type(n.outputs[0]).dims;
    return b.Add(OpKind::kReshape, {summed}, n.name + ".product", {}, with_one);
  });
}

}  // namespace tenon::graph
