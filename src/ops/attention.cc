#include "ops/attention.h"

#include <algorithm>

#include "ops/rows.h"
#include "ops/tile.h"

namespace tenon::ops {

using te::Indices;

bool AttentionApplies(const Group& group, const graph::Node& node) {
  const graph::Graph& g = group.graph();
  if (!(g.type(node.inputs[0]).dtype == DType::Float(32)) || !group.output(0).desc.IsPlain())
    return false;
  auto k = g.type(node.inputs[1]).StaticDims(), y = g.type(node.outputs[0]).StaticDims();
  return k && y && y->size() >= 3 && (*k)[k->size() - 2] >= Lanes32(group.target()) &&
         y->back() >= Lanes32(group.target()) &&
         std::equal(y->begin(), y->end(), group.output(0).dims.begin(), group.output(0).dims.end(),
                    [](int64_t want, const Expr& have) { return AsInt(have) == want; });
}

static Indices With(const Indices& i, const Expr& row, const Expr& col) {
  Indices out(i.begin(), i.end() - 2);
  out.push_back(row);
  out.push_back(col);
  return out;
}

static te::Storage Role(const char* role) {
  te::Storage storage;
  storage.attrs.Set("role", std::string(role));
  return storage;
}

Operand BuildAttention(Group& group, const graph::Node& node, Attrs* attrs) {
  OpContext op = group.Context(node);
  const Operand &q = op.in[0], &k = op.in[1], &v = op.in[2];
  size_t r = op.out.dims.size();
  int64_t lanes = Lanes32(group.target()), keys = k.dim(static_cast<int>(r) - 2),
          queries = q.dim(static_cast<int>(r) - 2);
  int64_t depth = q.dim(static_cast<int>(r) - 1), width = v.dim(static_cast<int>(r) - 1);
  std::vector<Expr> lead(op.out.dims.begin(), op.out.dims.end() - 2);
  auto dims = [&](int64_t a, int64_t b) {
    std::vector<Expr> d = lead;
    d.push_back(IndexConst(a));
    d.push_back(IndexConst(b));
    return d;
  };
  Expr scale = MakeConst(q.dtype, op.node->attrs.GetFloat("scale", 1));
  te::Tensor packed = te::Compute(
      op.name + "_kt", dims(depth, keys),
      [&](const Indices& i) { return k.at(With(i, i[r - 1], i[r - 2])); }, Role("pack"));
  te::Tensor dot = te::Compute(
      op.name + "_qk", dims(queries, keys),
      [&](const Indices& i) {
        te::Axis d = te::ReduceAxis("d", IndexConst(depth));
        return te::Sum(q.at(With(i, i[r - 2], d.var)) * packed.At(With(i, d.var, i[r - 1])), {d});
      },
      Role("scores"));
  te::Tensor score = te::Compute(
      op.name + "_score", dims(queries, keys),
      [&](const Indices& i) -> te::Body {
        Expr s = dot.At(i) * scale;
        if (!op.Has(3)) return s;
        Expr m = BroadcastAt(op.in[3], i);
        return m->dtype.IsBool() ? Select::Make(m, s, LowestOf(s->dtype)) : s + m;
      },
      Role("masked"));
  std::vector<Expr> rows = lead;
  rows.push_back(IndexConst(queries));
  auto at = [](Indices row, const Expr& j) {
    row.push_back(j);
    return row;
  };
  auto row_of = [](const Indices& i) { return Indices(i.begin(), i.end() - 1); };
  Operand m = ReduceRow(op.name + "_max", rows, keys, lanes, BinaryOp::kMax,
                        [&](const Indices& row, const Expr& j) { return score.At(at(row, j)); });
  te::Tensor e = te::Compute(
      op.name + "_exp", dims(queries, keys),
      [&](const Indices& i) {
        return Call::Make(Intrinsic::kExp, {score.At(i) - m.at(row_of(i))});
      },
      Role("row"));
  Operand sum = ReduceRow(op.name + "_sum", rows, keys, lanes, BinaryOp::kAdd,
                          [&](const Indices& row, const Expr& j) { return e.At(at(row, j)); });
  te::Tensor factor = te::Compute(
      op.name + "_factor", rows,
      [&](const Indices& row) {
        Expr s = sum.at(row);
        return MakeConst(s->dtype, 1) / s;
      },
      Role("factor"));
  te::Tensor weighted = te::Compute(
      op.name, op.out.dims,
      [&](const Indices& i) {
        te::Axis j = te::ReduceAxis("j", IndexConst(keys));
        return te::Sum(e.At(With(i, i[r - 2], j.var)) * v.at(With(i, j.var, i[r - 1])), {j});
      },
      Role("anchor"));
  RegisterTile scores_tile = ChooseTile(group.target(), 1, queries, (keys + lanes - 1) / lanes, 1);
  RegisterTile out_tile = ChooseTile(group.target(), 1, queries, (width + lanes - 1) / lanes, 1);
  int64_t block = std::min<int64_t>(scores_tile.tw, out_tile.tw);
  attrs->Set("rows", block);
  attrs->Set("score_vectors", scores_tile.nv);
  attrs->Set("out_vectors", out_tile.nv);
  bool nan_to_zero = op.node->attrs.Get<bool>("nan_to_zero", false);
  return {op.out.dtype, op.out.dims, [weighted, factor, row_of, nan_to_zero](const Indices& i) {
            Expr y = weighted.At(i) * factor.At(row_of(i));
            if (!nan_to_zero) return y;
            return Select::Make(Call::Make(Intrinsic::kIsNan, {y}), MakeConst(y->dtype, 0), y);
          }};
}

}  // namespace tenon::ops
