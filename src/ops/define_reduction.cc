// Reductions along axes: reduce, arg_reduce, topk, cumsum, search_sorted, softmax, log_softmax,
// layer_norm.
//
// A definition is a few computations: reductions, each a block with axes of one element in the
// place of the reduced ones where its readers have them, and what is made of those for each
// element, which is mostly no block but an expression that the reader of the result takes in.
// Softmax of f32[2, 3] along axis 1 is
//
//   t1_max[vi0, vi1] = max(t1_max[vi0, vi1], in0[vi0, vr1])             over vr1, from -inf
//   t1_exp[vi0, vi1] = exp(in0[vi0, vi1] - t1_max[vi0, 0])
//   t1_sum[vi0, vi1] = t1_sum[vi0, vi1] + t1_exp[vi0, vr1]              over vr1, from 0
//   out0[vi0, vi1] = t1_exp[vi0, vi1] / t1_sum[vi0, 0]
//
// The maximum of loop IR passes NaN over. Where the result has it anyway, as here by the sum, that
// is enough; reduce counts NaNs beside its maximum. Definitions are plain: topk counts what
// precedes each element; but cumsum goes along its axis with what it has added up, and
// search_sorted halves where it looks.
#include <fmt/format.h>

#include <algorithm>

#include "graph/dims.h"
#include "ops/define.h"
#include "support/check.h"

namespace tenon::ops {

using graph::OpKind;
using te::Indices;

static Expr Intrin(Intrinsic i, Expr x) { return Call::Make(i, {std::move(x)}); }
static Expr Const(const Expr& like, double v) { return MakeConst(like->dtype, v); }

// Splits the indices of a reduced tensor: `at(kept indices, reduced indices)` in the order of x's
// axes.
namespace {
struct ReducedAxes {
  std::vector<int64_t> axes;
  bool keepdims;
  const std::vector<Expr>& dims;

  bool IsReduced(size_t i) const {
    return std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end();
  }
  std::vector<te::Axis> MakeAxes(const char* prefix) const {
    std::vector<te::Axis> out;
    for (int64_t a : axes) {
      out.push_back(te::ReduceAxis(prefix + std::to_string(a), dims[static_cast<size_t>(a)]));
    }
    return out;
  }
  // The indices into x of result position `out` (of the kept axes, or all with keepdims) and the
  // reduction's axes.
  Indices Join(const Indices& out, const std::vector<te::Axis>& reduced) const {
    Indices in;
    size_t o = 0, r = 0;
    for (size_t i = 0; i < dims.size(); ++i) {
      if (IsReduced(i)) {
        in.push_back(reduced[r++].var);
        if (keepdims) ++o;
      } else {
        in.push_back(out[o++]);
      }
    }
    return in;
  }
  Expr Count() const {
    Expr n = IndexConst(1);
    for (int64_t a : axes) n = n * dims[static_cast<size_t>(a)];
    return n;
  }
};
}  // namespace

static Operand Sums(const OpContext& op, const std::string& suffix, const std::vector<Expr>& shape,
                    const ReducedAxes& r,
                    const std::function<te::Body(Expr, std::vector<te::Axis>)>& combine,
                    const std::function<Expr(const Indices&, const Indices&)>& term) {
  return Read(te::Compute(op.name + suffix, shape, [&](const Indices& out) {
    std::vector<te::Axis> axes = r.MakeAxes("r");
    return combine(term(out, r.Join(out, axes)), axes);
  }));
}

static te::Body SumOf(Expr e, std::vector<te::Axis> a) {
  return te::Sum(std::move(e), std::move(a));
}

// Passes NaN over.
static te::Body MaximumOf(Expr e, std::vector<te::Axis> a) {
  return te::MaxOf(std::move(e), std::move(a));
}

static Expr MapInput(const std::string& kind, const Expr& x) {
  if (kind == "l1")
    return x->dtype.IsSigned() || x->dtype.IsFloat() ? Intrin(Intrinsic::kAbs, x) : x;
  if (kind == "l2" || kind == "sum_square") return x * x;
  return x;
}

static Expr MapResult(const std::string& kind, const Expr& sum, const Expr& count) {
  if (kind == "mean") return sum / CastExpr::Make(sum->dtype, count);
  if (kind == "l2") {
    return sum->dtype.IsFloat()
               ? Intrin(Intrinsic::kSqrt, sum)
               : CastExpr::Make(sum->dtype,
                                Intrin(Intrinsic::kSqrt, CastExpr::Make(DType::Float(64), sum)));
  }
  if (kind == "log_sum" || kind == "log_sum_exp") {
    return sum->dtype.IsFloat()
               ? Intrin(Intrinsic::kLog, sum)
               : CastExpr::Make(sum->dtype,
                                Intrin(Intrinsic::kLog, CastExpr::Make(DType::Float(64), sum)));
  }
  return sum;
}

// Maximum or minimum; for floats NaN wins, by a second reduction that counts NaNs.
static Operand Extremum(const OpContext& op, const ReducedAxes& r, bool is_max,
                        const std::string& suffix) {
  const Operand& x = op.in[0];
  DType wide = x.dtype.IsBool() ? DType::UInt(8) : x.dtype;
  auto combine = [&](Expr e, std::vector<te::Axis> a) {
    return is_max ? te::MaxOf(std::move(e), std::move(a)) : te::MinOf(std::move(e), std::move(a));
  };
  Operand best = Sums(op, suffix, op.out.dims, r, combine, [&](const Indices&, const Indices& in) {
    return CastExpr::Make(wide, x.at(in));
  });
  if (!x.dtype.IsFloat()) {
    Operand out = best;
    out.dtype = x.dtype;
    out.at = [best, type = x.dtype](const Indices& i) { return CastExpr::Make(type, best.at(i)); };
    return out;
  }
  auto any = [&](Expr e, std::vector<te::Axis> a) { return te::MaxOf(std::move(e), std::move(a)); };
  // In numbers as wide as x, so that vectors of both go together.
  Operand nans =
      Sums(op, suffix + "_nan", op.out.dims, r, any, [&](const Indices&, const Indices& in) {
        return CastExpr::Make(wide, Intrin(Intrinsic::kIsNan, x.at(in)));
      });
  Operand out = best;
  out.at = [best, nans](const Indices& i) {
    Expr b = best.at(i);
    Expr has_nan = Gt(nans.at(i), MakeConst(b->dtype, 0));
    return Select::Make(has_nan, MakeConst(b->dtype, std::numeric_limits<double>::quiet_NaN()), b);
  };
  return out;
}

static Operand LogSumExp(const OpContext& op, const ReducedAxes& r) {
  const Operand& x = op.in[0];
  DType type = x.dtype.IsFloat() ? x.dtype : DType::Float(64);
  Operand xf = x;
  xf.dtype = type;
  xf.at = [x, type](const Indices& i) { return CastExpr::Make(type, x.at(i)); };
  Operand m = Sums(op, "_max", op.out.dims, r, MaximumOf,
                   [&](const Indices&, const Indices& in) { return xf.at(in); });
  // An infinite maximum would make inf - inf; shift by 0 then.
  auto shift = [m, type](const Indices& out) {
    Expr v = m.at(out);
    Expr finite = Lt(Intrin(Intrinsic::kAbs, v), HighestOf(type));
    return Select::Make(finite, v, MakeConst(type, 0));
  };
  Operand s = Sums(op, "_sum", op.out.dims, r, SumOf, [&](const Indices& out, const Indices& in) {
    return Intrin(Intrinsic::kExp, xf.at(in) - shift(out));
  });
  return {op.out.dtype, op.out.dims, [shift, s, out_type = op.out.dtype](const Indices& i) {
            return CastExpr::Make(out_type, shift(i) + Intrin(Intrinsic::kLog, s.at(i)));
          }};
}

static Operand DefineReduce(const OpContext& op) {
  std::string kind = op.node->attrs.GetString("kind");
  const Operand& x = op.in[0];
  ReducedAxes r{op.node->attrs.GetInts("axes"), op.node->attrs.Get<bool>("keepdims", false),
                x.dims};
  if (kind == "max" || kind == "min" || kind == "any" || kind == "all") {
    return Extremum(op, r, kind == "max" || kind == "any", "_" + kind);
  }
  if (kind == "log_sum_exp") return LogSumExp(op, r);
  auto combine = [&](Expr e, std::vector<te::Axis> a) {
    return kind == "prod" ? te::Prod(std::move(e), std::move(a))
                          : te::Sum(std::move(e), std::move(a));
  };
  Operand sum = Sums(op, "_" + kind, op.out.dims, r, combine,
                     [&](const Indices&, const Indices& in) { return MapInput(kind, x.at(in)); });
  Expr count = r.Count();
  return {op.out.dtype, op.out.dims,
          [sum, kind, count](const Indices& i) { return MapResult(kind, sum.at(i), count); }};
}

static Operand DefineArgReduce(const OpContext& op) {
  const Operand& x = op.in[0];
  bool is_max = op.node->attrs.GetString("kind") == "max";
  bool last = op.node->attrs.Get<bool>("select_last", false);
  ReducedAxes r{{op.Int("axis")}, op.node->attrs.Get<bool>("keepdims", false), x.dims};
  // Where there is a NaN, NaN is the best, and only those are it.
  Operand best = Extremum(op, r, is_max, "_best");
  // The first (last) position that holds the best value: a second reduction over positions.
  DType i64 = DType::Int(64);
  auto pick = [&](Expr e, std::vector<te::Axis> a) {
    return last ? te::MaxOf(std::move(e), std::move(a)) : te::MinOf(std::move(e), std::move(a));
  };
  size_t axis = static_cast<size_t>(op.Int("axis"));
  return Sums(op, "_at", op.out.dims, r, pick, [&](const Indices& out, const Indices& in) {
    Expr here = CastExpr::Make(i64, in[axis]);
    Expr none = last ? MakeIntConst(i64, 0) : CastExpr::Make(i64, x.dims[axis] - 1);
    Expr is_best = Eq(x.at(in), best.at(out));
    if (x.dtype.IsFloat()) is_best = Or(is_best, Intrin(Intrinsic::kIsNan, x.at(in)));
    return Select::Make(is_best, here, none);
  });
}

// Whether `a` at `i` stands before `b` at `j`: an order of all elements, NaN among the largest.
static Expr Precedes(const Expr& a, const Expr& i, const Expr& b, const Expr& j, bool largest) {
  Expr better = largest ? Gt(a, b) : Lt(a, b), worse = largest ? Lt(a, b) : Gt(a, b);
  if (a->dtype.IsFloat()) {
    Expr a_nan = Intrin(Intrinsic::kIsNan, a), b_nan = Intrin(Intrinsic::kIsNan, b);
    Expr only_a = And(a_nan, Not(b_nan)), only_b = And(b_nan, Not(a_nan));
    better = Or(better, largest ? only_a : only_b);
    worse = Or(worse, largest ? only_b : only_a);
  }
  return Or(better, And(Not(worse), Lt(i, j)));
}

// By counting: as many elements as precede one stand before it. The place of the p-th is then a sum
// with one term that is not zero.
std::vector<Operand> DefineTopK(const OpContext& op) {
  const Operand& x = op.in[0];
  const size_t axis = static_cast<size_t>(op.Int("axis"));
  const bool largest = op.node->attrs.Get<bool>("largest", true);
  const DType i32 = DType::Int(32), i64 = DType::Int(64);
  Operand rank = Read(te::Compute(op.name + "_rank", x.dims, [&](const Indices& out) {
    te::Axis r = te::ReduceAxis("r", x.dims[axis]);
    Indices other = out;
    other[axis] = r.var;
    Expr before = Precedes(x.at(other), r.var, x.at(out), out[axis], largest);
    return te::Sum(CastExpr::Make(i32, before), {r});
  }));
  Operand at = Read(te::Compute(op.name + "_at", op.out.dims, [&](const Indices& out) {
    te::Axis r = te::ReduceAxis("r", x.dims[axis]);
    Indices in = out;
    in[axis] = r.var;
    Expr here = Eq(rank.at(in), CastExpr::Make(i32, out[axis]));
    return te::Sum(Select::Make(here, CastExpr::Make(i32, r.var), MakeIntConst(i32, 0)), {r});
  }));
  Operand values{x.dtype, op.out.dims, [x, at, axis](const Indices& out) {
                   Indices in = out;
                   Expr place = CastExpr::Make(DType::Index(), at.at(out));
                   in[axis] = Max(Min(place, x.dims[axis] - 1), IndexConst(0));
                   return x.at(in);
                 }};
  return {values, As(i64, at)};
}

// In the order of adding, with what has been added up so far.
static Operand DefineCumSum(const OpContext& op) {
  const Operand& x = op.in[0];
  const size_t axis = static_cast<size_t>(op.Int("axis"));
  const bool exclusive = op.node->attrs.Get<bool>("exclusive", false),
             reverse = op.node->attrs.Get<bool>("reverse", false),
             product = op.node->attrs.GetString("kind") == "prod";
  const auto turned = [axis, reverse, last = x.dims[axis] - 1](Indices at) {
    if (reverse) at[axis] = last - at[axis];
    return at;
  };
  Operand sums = Read(te::WhileStepping(
      op.name + "_sums", x.dims, axis, exclusive, [&](const Indices& at) -> te::StepsBody {
        return {MakeConst(x.dtype, product ? 1 : 0), [&, at](const Expr& before) {
                  const Expr more = x.at(turned(at));
                  return product ? before * more : before + more;
                }};
      }));
  if (!reverse) return sums;
  return {x.dtype, x.dims, [sums, turned](const Indices& at) { return sums.at(turned(at)); }};
}

// By halving: the largest number of leading elements that are all at most the value, found bit by
// bit, the highest first. How many bits there are is asked where it runs, coarsely.
static Operand DefineSearchSorted(const OpContext& op) {
  const Operand &sorted = op.in[0], &values = op.in[1];
  const DType i64 = DType::Int(64);
  const Expr size = sorted.dims[0];
  const int64_t most = std::max<int64_t>(graph::DimRange(size).max, 0);
  int64_t bits = 0;
  while (bits < 62 && most >> bits != 0) ++bits;
  if (bits == 0) return {i64, op.out.dims, [i64](const Indices&) { return MakeIntConst(i64, 0); }};
  Expr steps = IndexConst(bits);
  for (int64_t fewer : {32, 20, 10}) {
    if (fewer < bits)
      steps = Select::Make(Lt(size, IndexConst(int64_t{1} << fewer)), IndexConst(fewer), steps);
  }
  const te::Axis step = te::ReduceAxis("step", steps);
  return Read(te::AfterSteps(
      op.name + "_found", op.out.dims, step, [&](const Indices& out) -> te::StepsBody {
        return {MakeIntConst(i64, 0), [&, out](const Expr& here) {
                  const Expr bit = Binary::Make(BinaryOp::kShl, MakeIntConst(i64, 1),
                                                CastExpr::Make(i64, steps - 1 - step.var));
                  const Expr more = CastExpr::Make(DType::Index(), here + bit);
                  const Expr at = Max(Min(more, size) - 1, IndexConst(0));
                  const Expr takes = And(Le(more, size), Le(sorted.at({at}), values.at(out)));
                  return Select::Make(takes, here + bit, here);
                }};
      }));
}

static Operand DefineSoftmax(const OpContext& op, bool log) {
  const Operand& x = op.in[0];
  size_t axis = static_cast<size_t>(op.Int("axis"));
  std::vector<Expr> rows = x.dims;
  rows[axis] = IndexConst(1);
  ReducedAxes r{{op.Int("axis")}, true, x.dims};
  Operand m = Sums(op, "_max", rows, r, MaximumOf,
                   [&](const Indices&, const Indices& in) { return x.at(in); });
  auto row = [axis](Indices i) {
    i[axis] = IndexConst(0);
    return i;
  };
  if (log) {
    Operand s = Sums(op, "_sum", rows, r, SumOf, [&](const Indices& out, const Indices& in) {
      return Intrin(Intrinsic::kExp, x.at(in) - m.at(row(out)));
    });
    Operand l = Read(te::Compute(op.name + "_log", rows, [&](const Indices& i) {
      return Intrin(Intrinsic::kLog, s.at(i));
    }));
    return {x.dtype, x.dims,
            [x, m, l, row](const Indices& i) { return x.at(i) - m.at(row(i)) - l.at(row(i)); }};
  }
  Operand e = Read(te::Compute(op.name + "_exp", x.dims, [&](const Indices& i) {
    return Intrin(Intrinsic::kExp, x.at(i) - m.at(row(i)));
  }));
  Operand s =
      Sums(op, "_sum", rows, r, SumOf, [&](const Indices&, const Indices& in) { return e.at(in); });
  return {x.dtype, x.dims, [e, s, row](const Indices& i) { return e.at(i) / s.at(row(i)); }};
}

static Operand DefineLayerNorm(const OpContext& op) {
  const Operand& x = op.in[0];
  size_t axis = static_cast<size_t>(op.Int("axis"));
  std::vector<Expr> rows = x.dims;
  std::vector<int64_t> axes;
  for (size_t i = axis; i < rows.size(); ++i) {
    rows[i] = IndexConst(1);
    axes.push_back(static_cast<int64_t>(i));
  }
  ReducedAxes r{axes, true, x.dims};
  Expr count = r.Count();
  auto row = [axis](Indices i) {
    for (size_t k = axis; k < i.size(); ++k) i[k] = IndexConst(0);
    return i;
  };
  auto mean_of = [count](const Expr& sum) { return sum / CastExpr::Make(sum->dtype, count); };
  Operand sum =
      Sums(op, "_sum", rows, r, SumOf, [&](const Indices&, const Indices& in) { return x.at(in); });
  Operand squares = Sums(op, "_var", rows, r, SumOf, [&](const Indices& out, const Indices& in) {
    Expr d = x.at(in) - mean_of(sum.at(row(out)));
    return d * d;
  });
  double epsilon = op.node->attrs.GetFloat("epsilon");
  return {x.dtype, x.dims, [op, x, sum, squares, row, mean_of, epsilon](const Indices& i) {
            Expr var = mean_of(squares.at(row(i)));
            Expr scale = Const(var, 1) / Intrin(Intrinsic::kSqrt, var + Const(var, epsilon));
            Expr y = (x.at(i) - mean_of(sum.at(row(i)))) * scale *
                     BroadcastAt(op.in[1], i, op.in[0].dims);
            return op.Has(2) ? y + BroadcastAt(op.in[2], i, op.in[0].dims) : y;
          }};
}

size_t AxisOf(const graph::Node& node) { return static_cast<size_t>(node.attrs.GetInt("axis")); }

Expr FromEnd(const Expr& raw, const Expr& dim) {
  const Expr i = CastExpr::Make(DType::Index(), raw);
  return Select::Make(Lt(i, IndexConst(0)), i + dim, i);
}

BinaryOp CombinerOf(const std::string& reduction) {
  return reduction == "add"   ? BinaryOp::kAdd
         : reduction == "mul" ? BinaryOp::kMul
         : reduction == "max" ? BinaryOp::kMax
                              : BinaryOp::kMin;
}

// For each element all updates along the axis are looked at: those whose index is its place are
// taken. Of them the last one counts, or all are combined.
static Operand DefineScatter(const OpContext& op) {
  const Operand &x = op.in[0], &indices = op.in[1], &updates = op.in[2];
  const size_t axis = static_cast<size_t>(op.Int("axis"));
  const std::string reduction = op.node->attrs.GetString("reduction");
  const Expr count = updates.dims[axis];
  if (IsZero(count)) return x;
  // The update at row j of the column that `out` is in; whether there is one, and it goes there.
  auto source = [axis, updates](const Indices& out, const Expr& j) {
    Indices in = out;
    for (size_t a = 0; a < in.size(); ++a)
      in[a] = a == axis ? j : Max(Min(out[a], updates.dims[a] - 1), IndexConst(0));
    return in;
  };
  auto goes_there = [=](const Indices& out, const Expr& j) {
    Expr here =
        Eq(FromEnd(BroadcastAt(indices, source(out, j), updates.dims), x.dims[axis]), out[axis]);
    for (size_t a = 0; a < out.size(); ++a) {
      if (a != axis && !graph::ProveEqual(updates.dims[a], x.dims[a]))
        here = And(Lt(out[a], updates.dims[a]), here);
    }
    return here;
  };
  if (reduction == "none") {
    const DType i64 = DType::Int(64);
    const Operand last = Read(te::Compute(op.name + "_last", op.out.dims, [&](const Indices& out) {
      te::Axis j = te::ReduceAxis("j", count);
      const Expr place =
          Select::Make(goes_there(out, j.var), CastExpr::Make(i64, j.var), MakeIntConst(i64, -1));
      return te::Body(place, {j}, BinaryOp::kMax, MakeIntConst(i64, -1));
    }));
    return {op.out.dtype, op.out.dims, [=](const Indices& out) {
              const Expr j = CastExpr::Make(DType::Index(), last.at(out));
              const Expr at = Max(j, IndexConst(0));
              return Select::Make(Ge(j, IndexConst(0)), updates.at(source(out, at)), x.at(out));
            }};
  }
  return Read(te::Compute(op.name + "_all", op.out.dims, [&](const Indices& out) {
    te::Axis j = te::ReduceAxis("j", count);
    const bool adds = reduction == "add", multiplies = reduction == "mul";
    const Expr here = x.at(out), update = updates.at(source(out, j.var));
    // What a reduction begins with changes nothing for the others: 0, 1, and what is there.
    const Expr none = adds ? MakeConst(x.dtype, 0) : multiplies ? MakeConst(x.dtype, 1) : here;
    return te::Body(Select::Make(goes_there(out, j.var), update, none), {j}, CombinerOf(reduction),
                    here);
  }));
}

Operand DefineReduction(const OpContext& op) {
  switch (op.node->op) {
    case OpKind::kReduce: return DefineReduce(op);
    case OpKind::kArgReduce: return DefineArgReduce(op);
    case OpKind::kCumSum: return DefineCumSum(op);
    case OpKind::kSearchSorted: return DefineSearchSorted(op);
    case OpKind::kScatter: return DefineScatter(op);
    case OpKind::kSoftmax: return DefineSoftmax(op, false);
    case OpKind::kLogSoftmax: return DefineSoftmax(op, true);
    case OpKind::kLayerNorm: return DefineLayerNorm(op);
    default: break;  // not a reduction: the caller dispatched wrongly
  }
  TN_UNREACHABLE();
}

}  // namespace tenon::ops
