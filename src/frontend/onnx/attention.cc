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
  if (!have || !want || *have < 1 || *want % *have != 0) {
    return c.Error("expected as many heads of queries as of keys, or a multiple, but got {} and {}",
                   graph::DimText(heads), graph::DimText(x.dim(1)));
  }
  return Repeat(x, 1, IndexConst(*want / *have));
}

Expected<double> ReadScale(OpContext& c, const Val& q, bool zero_is_none) {
  if (c.HasAttr("scale")) {
    TN_ASSIGN_OR_RETURN(const double scale, c.Float("scale", 0));
    if (scale != 0 || !zero_is_none) return scale;
  }
  const std::optional<int64_t> size = AsInt(q.dim(-1));
  if (!size || *size < 1)
    return c.Error("expected heads of known size, but got {}", graph::DimText(q.dim(-1)));
  return 1 / std::sqrt(static_cast<double>(*size));
}

Attended Attend(const Val& q, const Val& k, const Val& v, const Mask& mask,
                const AttentionForm& form) {
  const double root = std::sqrt(form.scale);
  Attended a;
  a.raw = MatMul(Widened(q) * root, Swap(Widened(k) * root, 2, 3));
  a.capped = form.softcap > 0 ? Tanh(a.raw / form.softcap) * form.softcap : a.raw;
  Val bias = mask.number ? Widened(mask.number) : Val();
  if (mask.allowed) {
    const Val number = bias ? bias : mask.allowed.formula().Number(a.raw.dtype(), 0);
    bias = Where(mask.allowed, number, -kInfinity);
  }
  a.scores = bias ? a.capped + bias : a.capped;
  const bool widest = form.precision == DType::Float(64);
  const Val wide = Cast(a.scores, widest ? *form.precision : a.raw.dtype());
  const Val weights =
      Cast(form.sink ? SoftmaxBeside(wide, Widened(form.sink)) : Softmax(wide, -1), a.raw.dtype());
  a.y = MatMul(weights, Widened(v));
  a.weights = weights;
  if (mask.may_be_empty && bias) {  // said of the results, so that nothing stands between softmax
                                    // and product
    const Val empty = Equal(Reduce("max", bias, {-1}), -kInfinity);
    a.y = Where(empty, 0, a.y);
    a.weights = Where(empty, 0, weights);
  }
  a.y = Cast(a.y, v.dtype());
  return a;
}

Expected<int64_t> TurnedPart(const OpContext& c, int64_t turned, const Val& heads) {
  const std::optional<int64_t> size = AsInt(heads.dim(3));
  if (turned == 0 && size) turned = *size;
  if (size && turned >= 2 && turned <= *size && turned % 2 == 0) return turned;
  return c.Error("expected an even part of heads of known size to turn, but got {} of {}", turned,
                 graph::DimText(heads.dim(3)));
}

Val Rotated(const Val& x, const Val& cos, const Val& sin, int64_t turned, bool interleaved) {
  const Expr half = IndexConst(turned / 2), zero = IndexConst(0), one = IndexConst(1);
  const int64_t step = interleaved ? 2 : 1, size = AsInt(x.dim(3)).value_or(turned);
  const Val a = Slice(x, 3, zero, half, step);
  const Val b = Slice(x, 3, interleaved ? one : half, half, step);
  const Val real = cos * a - sin * b, imaginary = sin * a + cos * b;
  Dims whole = real.dims();
  if (!whole.empty()) whole.back() = IndexConst(turned);
  Val y = interleaved ? Reshape(Stack({real, imaginary}, -1), whole) : Concat({real, imaginary}, 3);
  if (turned < size) y = Concat({y, Slice(x, 3, IndexConst(turned), IndexConst(size - turned))}, 3);
  return y;
}

}  // namespace tenon::onnx
