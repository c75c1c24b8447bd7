#include "ops/rows.h"

#include "ops/tile.h"

namespace tenon::ops {

using graph::OpKind;
using te::Indices;

namespace {

// Additions take four cycles and two start in each: four vectors hide most of it, where the row is
// long enough.
int64_t PartialWidth(int64_t n, int64_t lanes) {
  int64_t width = lanes;
  while (width < 4 * lanes && width * 4 <= n) width *= 2;
  return width;
}

te::Body Combine(BinaryOp op, Expr value, std::vector<te::Axis> axes) {
  return op == BinaryOp::kMax ? te::MaxOf(std::move(value), std::move(axes))
                              : te::Sum(std::move(value), std::move(axes));
}

}  // namespace

Operand ReduceRow(const std::string& name, const std::vector<Expr>& rows, int64_t n, int64_t lanes,
                  BinaryOp combiner,
                  const std::function<Expr(const Indices& row, const Expr& j)>& element) {
  int64_t width = PartialWidth(n, lanes), steps = (n + width - 1) / width;
  std::vector<Expr> wide = rows;
  wide.push_back(IndexConst(width));
  te::Storage lane_storage, sum_storage;
  lane_storage.attrs.Set("role", std::string("lanes"));
  sum_storage.attrs.Set("role", std::string("across"));
  sum_storage.fp = FpMode::kReassoc;
  te::Tensor partial = te::Compute(
      name + "_lanes", wide,
      [&](const Indices& i) {
        te::Axis step = te::ReduceAxis("s", IndexConst(steps));
        Expr j = Expr(step.var) * width + i.back();
        Expr value = element(Indices(i.begin(), i.end() - 1), j);
        te::Body body = Combine(combiner, value, {step});
        if (n % width != 0) body.value = Select::Make(Lt(j, IndexConst(n)), value, body.init);
        return body;
      },
      lane_storage);
  return Read(te::Compute(
      name, rows,
      [&](const Indices& i) {
        te::Axis lane = te::ReduceAxis("l", IndexConst(width));
        Indices at = i;
        at.push_back(lane.var);
        return Combine(combiner, partial.At(at), {lane});
      },
      sum_storage));
}

bool RowsApply(const Group& group, const graph::Node& node) {
  const graph::Graph& g = group.graph();
  const StoredTensor& y = group.output(0);
  auto x = g.type(node.inputs[0]).StaticDims();
  if (!x || x->empty() || !y.desc.IsPlain() || y.dims.size() != x->size() ||
      !(g.type(node.inputs[0]).dtype == DType::Float(32))) {
    return false;
  }
  int64_t last = static_cast<int64_t>(x->size()) - 1;
  if (node.attrs.GetInt("axis") != last || x->back() < Lanes32(group.target()) ||
      AsInt(y.dims.back()) != x->back())
    return false;
  return group.Stored(node.inputs[0]) == nullptr || group.Stored(node.inputs[0])->desc.IsPlain();
}

static Operand BuildSoftmax(const OpContext& op, const std::vector<Expr>& rows, int64_t n,
                            int64_t lanes) {
  const Operand& x = op.in[0];
  auto at = [](Indices row, const Expr& j) {
    row.push_back(j);
    return row;
  };
  Operand m = ReduceRow(op.name + "_max", rows, n, lanes, BinaryOp::kMax,
                        [&](const Indices& row, const Expr& j) { return x.at(at(row, j)); });
  te::Storage storage;
  storage.attrs.Set("role", std::string("row"));
  auto row_of = [](const Indices& i) { return Indices(i.begin(), i.end() - 1); };
  Operand e = Read(te::Compute(
      op.name + "_exp", x.dims,
      [&](const Indices& i) { return Call::Make(Intrinsic::kExp, {x.at(i) - m.at(row_of(i))}); },
      storage));
  Operand s = ReduceRow(op.name + "_sum", rows, n, lanes, BinaryOp::kAdd,
                        [&](const Indices& row, const Expr& j) { return e.at(at(row, j)); });
  return {x.dtype, x.dims, [e, s, row_of](const Indices& i) {
            Expr sum = s.at(row_of(i));
            return e.at(i) * (MakeConst(sum->dtype, 1) / sum);
          }};
}

static Operand BuildLayerNorm(const OpContext& op, const std::vector<Expr>& rows, int64_t n,
                              int64_t lanes) {
  const Operand& x = op.in[0];
  auto at = [](Indices row, const Expr& j) {
    row.push_back(j);
    return row;
  };
  auto row_of = [](const Indices& i) { return Indices(i.begin(), i.end() - 1); };
  Expr scale = MakeConst(x.dtype, 1.0 / static_cast<double>(n));
  Operand sum = ReduceRow(op.name + "_sum", rows, n, lanes, BinaryOp::kAdd,
                          [&](const Indices& row, const Expr& j) { return x.at(at(row, j)); });
  Operand squares = ReduceRow(op.name + "_var", rows, n, lanes, BinaryOp::kAdd,
                              [&](const Indices& row, const Expr& j) {
                                Expr d = x.at(at(row, j)) - sum.at(row) * scale;
                                return d * d;
                              });
  te::Storage storage;
  storage.attrs.Set("role", std::string("across"));
  double epsilon = op.node->attrs.GetFloat("epsilon");
  Operand factor = Read(te::Compute(
      op.name + "_factor", rows,
      [&](const Indices& row) {
        Expr var = squares.at(row) * scale;
        return MakeConst(var->dtype, 1) /
               Call::Make(Intrinsic::kSqrt, {var + MakeConst(var->dtype, epsilon)});
      },
      storage));
  return {x.dtype, x.dims, [op, x, sum, factor, scale, row_of](const Indices& i) {
            Expr y = (x.at(i) - sum.at(row_of(i)) * scale) * factor.at(row_of(i)) *
                     BroadcastAt(op.in[1], i);
            return op.Has(2) ? y + BroadcastAt(op.in[2], i) : y;
          }};
}

Operand BuildRows(Group& group, const graph::Node& node, Attrs* attrs) {
  OpContext op = group.Context(node);
  std::vector<Expr> rows(op.in[0].dims.begin(), op.in[0].dims.end() - 1);
  int64_t n = op.in[0].dim(op.in[0].rank() - 1);
  if (node.op == OpKind::kSoftmax) return BuildSoftmax(op, rows, n, Lanes32(group.target()));
  return BuildLayerNorm(op, rows, n, Lanes32(group.target()));
}

}  // namespace tenon::ops
