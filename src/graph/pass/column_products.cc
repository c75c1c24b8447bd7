#include "graph/pass/column_products.h"

#include "graph/dims.h"
#include "graph/pass/constants.h"
#include "graph/pass/rewrite.h"

namespace tenon::graph {

namespace {

bool HasOneColumn(const Graph& g, const Node& n) {
  if (n.op != OpKind::kMatMul || n.attrs.Get<bool>("trans_a", false)) return false;
  const DType f32 = DType::Float(32);
  for (ValueId v : {n.inputs[0], n.inputs[1], n.outputs[0]}) {
    if (g.type(v).dtype != f32) return false;
  }
  const std::string accumulator = n.attrs.GetString("accumulator");
  if (!accumulator.empty() && accumulator != "f32") return false;
  const std::vector<Expr>& b = g.type(n.inputs[1]).dims;
  return IsOne(n.attrs.Get<bool>("trans_b", false) ? b[b.size() - 2] : b.back());
}

}  // namespace

Graph ColumnProducts(const Graph& g, const GraphPassContext& context) {
  if (context.machine->warp == 0) return g;
  const std::vector<bool> constant = ConstantValues(g);
  return Rewrite(g, [&](Builder& b, NodeId id) -> Expected<ValueId> {
    const Node n = b.graph().node(id);
    if (!HasOneColumn(b.graph(), n)) return kNoValue;
    for (ValueId v : n.inputs) {  // of the graph as it was: nodes that are asked about are old
      const auto at = static_cast<size_t>(v);
      if (at >= constant.size() || constant[at]) return kNoValue;
    }
    ValueId column = n.inputs[1];
    if (!n.attrs.Get<bool>("trans_b", false)) {
      ExprAttrs shape;
      shape["shape"] = b.type(column).dims;
      std::swap(shape["shape"].back(), shape["shape"][shape["shape"].size() - 2]);
      TN_ASSIGN_OR_RETURN(column, b.Add(OpKind::kReshape, {column}, n.name + ".row", {}, shape));
    }
    TN_ASSIGN_OR_RETURN(const ValueId product,
                        b.Add(OpKind::kMul, {n.inputs[0], column}, n.name + ".each"));
    Attrs sum;
    sum.Set("kind", std::string("sum"));
    sum.Set("axes", std::vector<int64_t>{b.type(product).rank() - 1});
    TN_ASSIGN_OR_RETURN(const ValueId row, b.Add(OpKind::kReduce, {product}, n.name, sum));
    ExprAttrs with_column;
    with_column["shape"] = b.type(n.outputs[0]).dims;
    return b.Add(OpKind::kReshape, {row}, n.name + ".column", {}, with_column);
  });
}

}  // namespace tenon::graph
