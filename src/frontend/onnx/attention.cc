#include "frontend/onnx/attention.h"

#include <cmath>
#include <limits>

namespace tenon::onnx {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Softmax of scores [B, H, S, T] beside one more score, which is left out again.
Val SoftmaxBeside(const Val& scores, const Val& sink) {
  Dims dims = scores.dims();
  if (!scores || !sink || dims.size() != 4) return scores;
  const Expr keys = dims[3], one = IndexConst(1);
  dims[3] = one;
  const Val beside =
      Expand(Reshape(Cast(sink, scores.dtype()), {one, sink.dim(0), one, one}), dims);
  return Slice(Softmax(Concat({scores, beside}, 3), 3), 3, IndexConst(0), keys);
}

}  // namespace

Val SplitHeads(const Val& x, int64_t heads) {
  const Expr h = IndexConst(heads);
  return Swap(Reshape(x, {x.dim(0), x.dim(1), h, graph::DimFloorDiv(x.dim(2), h)}), 1, 2);
}

Val JoinHeads(const Val& x) {
  return Reshape(Swap(x, 1, 2), {x.dim(0), x.dim(2), graph::DimMul(x.dim(1), x.dim(3))});
}

Expected<Val> ShareHeads(const OpContext& c, const Val& x, const Expr& heads) {
  if (graph::ProveEqual(x.dim(1), heads)) return x;
  const auto have = AsInt(x.dim(1)), want = AsInt(heads);
  if (!have || !want) {  // Reshape asks that nothing be left over
    const Expr times = graph::DimFloorDiv(heads, x.dim(1));
    return Reshape(Repeat(x, 1, times), {x.dim(0), heads, x.dim(2), x.dim(3)});
  }
  if (*have < 1 || *want % *have != 0) {
    return c.Error("expected as many heads of queries as of keys, or a multiple, but got {} and {}",
                   graph::DimText(heads), graph::DimText(x.dim(1)));
  }
  return Repeat(x, 1, IndexConst(*want / *have));
}

Val Scale::Times(const Val& x) const { return number ? x * *number : x * Cast(by_call, x.dtype()); }

Scale Scale::Root() const {
  return number ? Scale{std::sqrt(*number), {}} : Scale{std::nullopt, Sqrt(by_call)};
}

Expected<Scale> DefaultScale(const OpContext& c, const Val& heads) {
  const std::optional<int64_t> size = AsInt(heads.dim(-1));
  if (!size) return Scale{std::nullopt, 1 / Sqrt(Cast(Size(heads, -1), DType::Float(32)))};
  if (*size < 1) {
    return c.Error("expected heads of at least one element, but got {}",
                   graph::DimText(heads.dim(-1)));
  }
  return Scale{1 / std::sqrt(static_cast<double>(*size)), {}};
}

Expected<Scale> ReadScale(OpContext& c, const Val& heads, bool zero_is_none) {
  if (!c.HasAttr("scale")) return DefaultScale(c, heads);
  TN_ASSIGN_OR_RETURN(const double given, c.Float("scale", 0));
  if (given == 0 && zero_is_none) return DefaultScale(c, heads);
  return Scale{given, {}};
}

Attended Attend(const Val& q, const Val& k, const Val& v, const Mask& mask,
                const AttentionForm& form) {
  const Scale root = form.scale.Root();
  Attended a;
  a.raw = MatMul(root.Times(Widened(q)), Swap(root.Times(Widened(k)), 2, 3));
  a.capped = form.softcap > 0 ? Tanh(a.raw / form.softcap) * form.softcap : a.raw;
  Val bias = mask.number ? Cast(mask.number, a.raw.dtype()) : Val();
  if (mask.allowed) {
    const Val number = bias ? bias : mask.allowed.formula().Number(a.raw.dtype(), 0);
    bias = Where(mask.allowed, number, -kInfinity);
  }
  a.scores = bias ? a.capped + bias : a.capped;
  const bool widest = form.precision == DType::Float(64);
  const Val wide = Cast(a.scores, widest ? *form.precision : a.raw.dtype());
  const Val weights =
      Cast(form.sink ? SoftmaxBeside(wide, Widened(form.sink)) : Softmax(wide, -1), a.raw.dtype());
  a.y = MatMul(weights, Cast(v, a.raw.dtype()));
  a.weights = weights;
  if (mask.may_be_empty && bias) {  // said of the results, so that nothing stands between softmax
                                    // and product
    const Val empty = Equal(Reduce("max", bias, {-1}), -kInfinity);
    a.y = Where(empty, 0, a.y);
    a.weights = Where(empty, 0, weights);
  }
  a.y = Cast(a.y, q.dtype());
  return a;
}

Expected<Expr> TurnedPart(const OpContext& c, int64_t part, const Val& heads) {
  const Expr size = heads.dim(3), turned = part == 0 ? size : IndexConst(part);
  const Expr half = graph::DimFloorDiv(turned, IndexConst(2)), rest = graph::DimSub(size, turned);
  const Expr even = graph::DimMul(half, IndexConst(2));
  if (part < 0 || graph::ProveDifferent(even, turned) || graph::DimRange(rest).max < 0 ||
      graph::DimRange(half).max < 1) {
    return c.Error("expected an even part of heads to turn, but got {} of {}",
                   graph::DimText(turned), graph::DimText(size));
  }
  c.b.Require(And(Eq(even, turned), Le(turned, size)));
  return turned;
}

Val Rotated(const Val& x, const Val& cos, const Val& sin, const Expr& turned, bool interleaved) {
  const Expr half = graph::DimFloorDiv(turned, IndexConst(2)), zero = IndexConst(0),
             one = IndexConst(1);
  const int64_t step = interleaved ? 2 : 1;
  const Expr size = x.dim(3);
  const Val a = Slice(x, 3, zero, half, step);
  const Val b = Slice(x, 3, interleaved ? one : half, half, step);
  const Val real = cos * a - sin * b, imaginary = sin * a + cos * b;
  Dims whole = real.dims();
  if (!whole.empty()) whole.back() = turned;
  const Val y =
      interleaved ? Reshape(Stack({real, imaginary}, -1), whole) : Concat({real, imaginary}, 3);
  if (graph::ProveEqual(turned, size)) return y;
  return Concat({y, Slice(x, 3, turned, graph::DimSub(size, turned))}, 3);
}

}  // namespace tenon::onnx
