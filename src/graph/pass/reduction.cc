#include "graph/pass/reduction.h"

namespace tenon::graph {

Pattern Reduction(int slot, Pattern x) {
  Pattern reduced = As(slot, Op(OpKind::kReduce, {std::move(x)}));
  return OneOf({reduced, Op(OpKind::kReshape, {reduced})});
}

std::vector<int64_t> ReducedAxes(const Graph& g, ValueId reduced, std::string_view kind,
                                 ValueId kept) {
  const Node& n = g.node(g.value(reduced).producer);
  if (n.attrs.GetString("kind") != kind) return {};
  std::vector<int64_t> axes = n.attrs.GetInts("axes");
  std::vector<Expr> dims = g.type(n.inputs[0]).dims;
  for (int64_t a : axes) dims[static_cast<size_t>(a)] = IndexConst(1);
  const std::vector<Expr>& have = g.type(kept).dims;
  bool same = std::equal(dims.begin(), dims.end(), have.begin(), have.end(),
                         [](const Expr& a, const Expr& b) { return StructuralEqual(a, b); });
  return same ? axes : std::vector<int64_t>{};
}

}  // namespace tenon::graph
