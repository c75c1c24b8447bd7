#include "ops/ranked.h"

namespace tenon::ops {

using te::Indices;

Operand ElementsByRank(Group& group, const graph::Node& node, const PlaceOfRank& place) {
  const OpContext op = group.Context(node);
  const size_t axis = AxisOf(node);
  const auto at = [place, axis](Indices row) {
    const Expr rank = row[axis];
    row.erase(row.begin() + static_cast<long>(axis));
    return place(row, rank);
  };
  group.Set(node.outputs[1], {DType::Int(64), op.out.dims, [at](const Indices& out) {
                                return CastExpr::Make(DType::Int(64), at(out));
                              }});
  const Operand x = op.in[0];
  return {x.dtype, op.out.dims, [x, at, axis](Indices out) {
            const Expr found = CastExpr::Make(DType::Index(), at(out));
            out[axis] = Max(Min(found, x.dims[axis] - 1), IndexConst(0));
            return x.at(out);
          }};
}

}  // namespace tenon::ops
