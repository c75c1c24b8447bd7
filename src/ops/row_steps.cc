#include "ops/row_steps.h"

#include "graph/dims.h"
#include "graph/storage_desc.h"

namespace tenon::ops {

using te::Indices;

// Additions take four cycles and two start in each: four vectors hide most of it, where the row is
// long enough.
int64_t PartialWidth(int64_t n, int64_t lanes) {
  int64_t width = lanes;
  while (width < 4 * lanes && width * 4 <= n) width *= 2;
  return width;
}

namespace {

te::Body Combine(BinaryOp op, Expr value, std::vector<te::Axis> axes) {
  return op == BinaryOp::kMax ? te::MaxOf(std::move(value), std::move(axes))
                              : te::Sum(std::move(value), std::move(axes));
}

}  // namespace

Operand ReduceRow(Group& group, const std::string& name, const std::vector<Expr>& rows,
                  const Expr& n, int64_t width, BinaryOp combiner,
                  const std::function<Expr(const Indices& row, const Expr& j)>& element,
                  const RowRoles& roles) {
  if (width == 0) {
    return Read(te::Compute(group.Mark(name, roles.across), rows, [&](const Indices& row) {
      te::Axis j = te::ReduceAxis("j", n);
      return Combine(combiner, element(row, j.var), {j});
    }));
  }
  const Expr whole = graph::InBlocks(n, width);
  const Expr steps = graph::DimFloorDiv(whole, IndexConst(width));
  std::vector<Expr> wide = rows;
  wide.push_back(IndexConst(width));
  te::Tensor partial =
      te::Compute(group.Mark(name + "_lanes", roles.lanes), wide, [&](const Indices& i) {
        te::Axis step = te::ReduceAxis("s", steps);
        Expr j = Expr(step.var) * width + i.back();
        Expr value = element(RowOf(i), j);
        te::Body body = Combine(combiner, value, {step});
        if (!graph::ProveEqual(whole, n)) body.value = Select::Make(Lt(j, n), value, body.init);
        return body;
      });
  te::Storage sum_storage;
  sum_storage.fp = FpMode::kReassoc;
  return Read(te::Compute(
      group.Mark(name, roles.across), rows,
      [&](const Indices& i) {
        te::Axis lane = te::ReduceAxis("l", IndexConst(width));
        return Combine(combiner, partial.At(InRow(i, lane.var)), {lane});
      },
      sum_storage));
}

Indices InRow(Indices row, const Expr& j) {
  row.push_back(j);
  return row;
}

Indices RowOf(const Indices& i) { return Indices(i.begin(), i.end() - 1); }

}  // namespace tenon::ops
