// Contractions: matrix product and attention.
#include <algorithm>

#include "graph/infer.h"
#include "ops/define.h"
#include "ops/split_float.h"

namespace tenon::ops {

using graph::OpKind;
using te::Indices;

static Operand DefineMatMul(const OpContext& op) {
  const Operand &a = op.in[0], &b = op.in[1];
  bool ta = op.node->attrs.Get<bool>("trans_a", false),
       tb = op.node->attrs.Get<bool>("trans_b", false);
  size_t r = op.out.dims.size();
  Expr depth = a.dims[a.dims.size() - (ta ? 2 : 1)];
  const DType wide = graph::ContractionTypesOf(a.dtype, b.dtype, op.node->attrs)->accumulator;
  // The operand's indices: its own leading dims out of the result's, then row and column.
  auto at = [r, &op](const Operand& x, const Indices& out, const Expr& row, const Expr& col) {
    Indices in;
    size_t lead = x.dims.size() - 2;
    for (size_t i = 0; i < lead; ++i)
      in.push_back(BroadcastIndex(x.dims[i], out[r - 2 - lead + i], op.out.dims[r - 2 - lead + i]));
    in.push_back(row);
    in.push_back(col);
    return x.at(in);
  };
  return As(op.out.dtype, Read(te::Compute(op.name, op.out.dims, [&](const Indices& out) {
              te::Axis k = te::ReduceAxis("k", depth);
              Expr x = ta ? at(a, out, k.var, out[r - 2]) : at(a, out, out[r - 2], k.var);
              Expr y = tb ? at(b, out, out[r - 1], k.var) : at(b, out, k.var, out[r - 1]);
              return te::Sum(CastExpr::Make(wide, x) * CastExpr::Make(wide, y), {k});
            })));
}

// Where blocks are whole, k is a block, a byte of it, and a code of that, so that schedules find
// these loops; else one number.
static Operand DefineBlockMatMul(const OpContext& op) {
  const DType i32 = DType::Int(32), u32 = DType::UInt(32);
  const int64_t bits = op.Int("bits"), block = op.Int("block"), per_byte = 8 / bits;
  const Operand &a = op.in[0], &codes = op.in[1], &scales = op.in[2], &offsets = op.in[3];
  const int64_t depth = a.dim(a.rank() - 1);
  return Read(te::Compute(op.name, op.out.dims, [&](const Indices& out) {
    std::vector<te::Axis> axes;
    Expr k, in_block, byte, code;
    if (depth % block == 0) {
      axes = {te::ReduceAxis("k_block", IndexConst(depth / block)),
              te::ReduceAxis("k_byte", IndexConst(block / per_byte)),
              te::ReduceAxis("k_code", IndexConst(per_byte))};
      in_block = axes[0].var;
      byte = in_block * (block / per_byte) + Expr(axes[1].var);
      code = axes[2].var;
      k = byte * per_byte + code;
    } else {
      axes = {te::ReduceAxis("k", IndexConst(depth))};
      k = axes[0].var;
      in_block = k / block;
      byte = k / per_byte;
      code = k % per_byte;
    }
    Indices at(out.begin(), out.end() - 1);
    at.push_back(k);
    const Expr& j = out.back();
    Expr number = CastExpr::Make(u32, codes.at({j, byte}));
    if (bits < 8) {
      number = Binary::Make(BinaryOp::kShr, number, CastExpr::Make(u32, code * bits));
      number = Binary::Make(BinaryOp::kBitAnd, number, MakeConst(u32, (1 << bits) - 1));
    }
    const Expr weight =
        CastExpr::Make(a.dtype, CastExpr::Make(i32, number)) * scales.at({j, in_block}) -
        offsets.at({j, in_block});
    return te::Sum(a.at(at) * weight, axes);
  }));
}

static Operand DefineSplitMatMul(const OpContext& op) {
  const Operand &a = op.in[0], &parts = op.in[1];
  const bool trans = op.node->attrs.Get<bool>("trans_b", false);
  return Read(te::Compute(op.name, op.out.dims, [&](const Indices& out) {
    te::Axis k = te::ReduceAxis("k", a.dims.back());
    const auto part = [&](int64_t which) {
      const Expr row = trans ? out.back() : Expr(k.var), column = trans ? Expr(k.var) : out.back();
      return CastExpr::Make(a.dtype, parts.at({IndexConst(which), row, column}));
    };
    Indices at(out.begin(), out.end() - 1);
    at.push_back(k.var);
    const Expr x = a.at(at), high = CastExpr::Make(a.dtype, HighPart(x));
    const Expr low = CastExpr::Make(a.dtype, LowPart(x));
    return te::Sum((high + low) * part(0) + high * part(1), {k});
  }));
}

static Operand DefineAttention(const OpContext& op) {
  const Operand &q = op.in[0], &k = op.in[1], &v = op.in[2];
  size_t r = q.dims.size();
  std::vector<Expr> scores_dims(q.dims.begin(), q.dims.end() - 1);
  scores_dims.push_back(k.dims[r - 2]);
  std::vector<Expr> row_dims(q.dims.begin(), q.dims.end() - 1);
  Expr scale = MakeConst(q.dtype, op.node->attrs.GetFloat("scale", 1));
  auto with = [r](const Indices& out, const Expr& row, const Expr& col) {
    Indices in(out.begin(), out.begin() + static_cast<long>(r - 2));
    in.push_back(row);
    in.push_back(col);
    return in;
  };
  Operand dot = Read(te::Compute(op.name + "_qk", scores_dims, [&](const Indices& i) {
    te::Axis d = te::ReduceAxis("d", q.dims[r - 1]);
    return te::Sum(q.at(with(i, i[r - 2], d.var)) * k.at(with(i, i[r - 1], d.var)), {d});
  }));
  auto score = [op, dot, scale, scores_dims](const Indices& i) {
    Expr s = dot.at(i) * scale;
    if (!op.Has(3)) return s;
    Expr m = BroadcastAt(op.in[3], i, scores_dims);
    if (!m->dtype.IsBool()) return s + m;
    return Select::Make(m, s, LowestOf(s->dtype));
  };
  auto append = [](Indices i, const Expr& e) {
    i.push_back(e);
    return i;
  };
  Operand m = Read(te::Compute(op.name + "_max", row_dims, [&](const Indices& i) {
    te::Axis j = te::ReduceAxis("j", k.dims[r - 2]);
    return te::MaxOf(score(append(i, j.var)), {j});
  }));
  auto row = [](const Indices& i) { return Indices(i.begin(), i.end() - 1); };
  Operand e = Read(te::Compute(op.name + "_exp", scores_dims, [&](const Indices& i) {
    return Call::Make(Intrinsic::kExp, {score(i) - m.at(row(i))});
  }));
  Operand sum = Read(te::Compute(op.name + "_sum", row_dims, [&](const Indices& i) {
    te::Axis j = te::ReduceAxis("j", k.dims[r - 2]);
    return te::Sum(e.at(append(i, j.var)), {j});
  }));
  Operand weighted = Read(te::Compute(op.name + "_pv", op.out.dims, [&](const Indices& i) {
    te::Axis j = te::ReduceAxis("j", k.dims[r - 2]);
    return te::Sum(e.at(with(i, i[r - 2], j.var)) * v.at(with(i, j.var, i[r - 1])), {j});
  }));
  bool nan_to_zero = op.node->attrs.Get<bool>("nan_to_zero", false);
  const Expr keys = k.dims[r - 2];
  return {op.out.dtype, op.out.dims, [weighted, sum, row, keys, nan_to_zero](const Indices& i) {
            Expr y = weighted.at(i) / TotalOf(sum.at(row(i)), keys);
            if (!nan_to_zero) return y;
            return Select::Make(Call::Make(Intrinsic::kIsNan, {y}), MakeConst(y->dtype, 0), y);
          }};
}

Operand DefineContraction(const OpContext& op) {
  switch (op.node->op) {
    case OpKind::kMatMul: return DefineMatMul(op);
    case OpKind::kBlockMatMul: return DefineBlockMatMul(op);
    case OpKind::kSplitMatMul: return DefineSplitMatMul(op);
    default: return DefineAttention(op);
  }
}

}  // namespace tenon::ops
