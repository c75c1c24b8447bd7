// Resize: separable interpolation, with the coordinate rules of ONNX. Coordinates are f32, as its
// reference computes them.
#include <cmath>

#include "graph/dims.h"
#include "ops/define.h"

namespace tenon::ops {

using te::Indices;

namespace {

Expr F(double v) { return FloatConst::Make(DType::Float(32), v); }
Expr ToF(const Expr& i) { return CastExpr::Make(DType::Float(32), i); }
Expr ToIndex(const Expr& f) { return CastExpr::Make(DType::Index(), f); }
Expr Floor(const Expr& f) { return Call::Make(Intrinsic::kFloor, {f}); }
Expr Ceil(const Expr& f) { return Call::Make(Intrinsic::kCeil, {f}); }
Expr Abs(const Expr& f) { return Call::Make(Intrinsic::kAbs, {f}); }
Expr ClampIndex(const Expr& i, const Expr& dim) { return Max(Min(i, dim - 1), IndexConst(0)); }

/// A real number about an axis: known now, or an expression of its symbolic sizes.
struct Real {
  std::optional<double> known;
  Expr e;

  Real(double v) : known(v), e(F(v)) {}  // NOLINT(google-explicit-constructor): as literals
  explicit Real(const Expr& size) : e(ToF(size)) {
    if (auto n = AsInt(size)) *this = Real(static_cast<double>(*n));
  }
};

// Known numbers are worked out in double, and then rounded once.
Real Apply(BinaryOp op, const Real& a, const Real& b) {
  if (a.known && b.known) {
    const double x = *a.known, y = *b.known;
    switch (op) {
      case BinaryOp::kSub: return x - y;
      case BinaryOp::kMul: return x * y;
      case BinaryOp::kDiv: return x / y;
      default: break;
    }
  }
  Real out(0);
  out.known.reset();
  out.e = Binary::Make(op, a.e, b.e);
  return out;
}
Real operator-(const Real& a, const Real& b) { return Apply(BinaryOp::kSub, a, b); }
Real operator*(const Real& a, const Real& b) { return Apply(BinaryOp::kMul, a, b); }
Real operator/(const Real& a, const Real& b) { return Apply(BinaryOp::kDiv, a, b); }

// `one` where x is 1, else `other`.
Expr IfOne(const Real& x, const Expr& one, const Expr& other) {
  if (x.known) return *x.known == 1 ? one : other;
  return Select::Make(Eq(x.e, F(1)), one, other);
}

/// One axis that is resized.
struct Axis {
  size_t axis;
  Expr in_dim;
  Real in, out;
  Real scale;
  double roi_begin, roi_end;

  // The resized length before it was rounded: scales need not give whole sizes.
  Real Whole() const {
    const Real whole = scale * in;
    if (!whole.known) return whole;
    double w = *whole.known, rounded = std::round(w);
    return std::abs(w - rounded) <= 1e-6 * rounded ? rounded : w;
  }
};

// Where output position o lies in x, by the coordinate transformation.
Expr Coordinate(const std::string& mode, const Axis& a, const Expr& position) {
  Expr o = ToF(position);
  const Real whole = a.Whole(), in_last = a.in - 1, whole_last = whole - 1;
  if (mode == "asymmetric") return o / a.scale.e;
  if (mode == "align_corners") return IfOne(whole, F(0), o * in_last.e / whole_last.e);
  if (mode == "tf_half_pixel_for_nn") return (o + F(0.5)) / a.scale.e;
  if (mode == "tf_crop_and_resize") {
    const Real middle = Real(a.roi_begin + a.roi_end) / 2, reach(a.roi_end - a.roi_begin);
    return IfOne(whole, (middle * in_last).e,
                 (Real(a.roi_begin) * in_last).e + o * (reach * in_last / whole_last).e);
  }
  Expr half = (o + F(0.5)) / a.scale.e - F(0.5);
  if (mode == "pytorch_half_pixel") return IfOne(whole, F(0), half);
  if (mode == "half_pixel_symmetric") return half + (a.in / 2 * (Real(1) - a.out / whole)).e;
  return half;
}

Expr NearestIndex(const std::string& rule, const Expr& c) {
  if (rule == "floor") return ToIndex(Floor(c));
  if (rule == "ceil") return ToIndex(Ceil(c));
  if (rule == "round_prefer_ceil") return ToIndex(Floor(c + F(0.5)));
  return ToIndex(Ceil(c - F(0.5)));
}

// The nearest element by the rules that come to whole numbers where an axis becomes `times` as
// long: each element that many times beside itself. Null: others.
Expr RepeatedIndex(const Attrs& attrs, const Axis& a, const Expr& position, const Expr& out_dim) {
  if (attrs.GetString("mode") != "nearest" || !a.scale.known) return nullptr;
  const double scale = *a.scale.known;
  if (!(scale >= 2 && scale <= INT32_MAX) || scale != std::floor(scale)) return nullptr;
  const Expr times = IndexConst(static_cast<int64_t>(scale));
  if (!graph::ProveEqual(out_dim, graph::DimMul(a.in_dim, times))) return nullptr;
  const std::string transform = attrs.GetString("coordinates"), rule = attrs.GetString("nearest");
  const bool from_begin = transform == "asymmetric" || transform == "tf_half_pixel_for_nn";
  const bool from_middle = transform == "half_pixel" || transform == "pytorch_half_pixel" ||
                           transform == "half_pixel_symmetric";
  const bool rounds = rule == "round_prefer_floor" || rule == "round_prefer_ceil";
  return (from_begin && rule == "floor") || (from_middle && rounds) ? position / times : nullptr;
}

// Keys' cubic kernel at distance t.
Expr Cubic(const Expr& distance, double a) {
  Expr t = Abs(distance);
  Expr near = ((t * F(a + 2) - F(a + 3)) * t) * t + F(1);
  Expr far = ((t * F(a) - F(5 * a)) * t + F(8 * a)) * t - F(4 * a);
  return Select::Make(Le(t, F(1)), near, Select::Make(Lt(t, F(2)), far, F(0)));
}
Expr Triangle(const Expr& distance) { return Max(F(1) - Abs(distance), F(0)); }

struct Tap {
  Expr index, weight;
};

// The positions and weights along one axis that make up an output position.
std::vector<Tap> Taps(const graph::Node& node, const Axis& a, const Expr& c) {
  const Attrs& attrs = node.attrs;
  std::string mode = attrs.GetString("mode");
  if (mode == "nearest")
    return {{ClampIndex(NearestIndex(attrs.GetString("nearest"), c), a.in_dim), nullptr}};
  bool cubic = mode == "cubic";
  const double scale = a.scale.known.value_or(1);  // antialiasing needs it known: its type rule
  bool antialias = attrs.Get<bool>("antialias", false) && scale < 1;
  bool drop_outside = attrs.Get<bool>("exclude_outside", false),
       normalise = antialias || drop_outside;
  double stretch = antialias ? scale : 1.0;
  int64_t reach = static_cast<int64_t>(std::ceil((cubic ? 2 : 1) / stretch));
  Expr base = Floor(c);
  std::vector<Tap> taps;
  Expr total;
  for (int64_t j = 1 - reach; j <= reach; ++j) {
    Expr at = base + F(static_cast<double>(j));
    Expr distance = (at - c) * F(stretch);
    Expr weight = cubic ? Cubic(distance, attrs.GetFloat("cubic_coeff_a")) : Triangle(distance);
    Expr index = ToIndex(at);
    if (drop_outside) {
      Expr inside = And(Ge(index, IndexConst(0)), Lt(index, a.in_dim));
      weight = Select::Make(inside, weight, F(0));
    }
    total = total ? total + weight : weight;
    taps.push_back({ClampIndex(index, a.in_dim), weight});
  }
  if (normalise) {
    for (Tap& tap : taps) tap.weight = tap.weight / total;
  }
  return taps;
}

std::vector<Axis> ResizedAxes(const OpContext& op) {
  std::vector<double> scales = op.node->attrs.Get<std::vector<double>>("scales", {});
  std::vector<double> roi = op.node->attrs.Get<std::vector<double>>("roi", {});
  size_t r = op.out.dims.size();
  std::vector<Axis> axes;
  for (size_t i = 0; i < r; ++i) {
    const Expr &in_dim = op.in[0].dims[i], &out_dim = op.out.dims[i];
    const Real in(in_dim), out(out_dim);
    const bool same = graph::ProveEqual(in_dim, out_dim);
    const Real scale = !scales.empty() ? Real(scales[i]) : same ? Real(1) : out / in;
    Axis a{i, in_dim, in, out, scale, 0, 1};
    if (roi.size() == 2 * r) {
      a.roi_begin = roi[i];
      a.roi_end = roi[r + i];
    }
    if (same && scale.known == 1 && a.roi_begin == 0 && a.roi_end == 1) continue;
    axes.push_back(a);
  }
  return axes;
}

}  // namespace

Expr DefineResize(const OpContext& op, const Indices& out) {
  std::string transform = op.node->attrs.GetString("coordinates");
  std::vector<Axis> axes = ResizedAxes(op);
  std::vector<std::vector<Tap>> taps;
  Expr outside;
  for (const Axis& a : axes) {
    if (const Expr at = RepeatedIndex(op.node->attrs, a, out[a.axis], op.out.dims[a.axis])) {
      taps.push_back({{at, nullptr}});
      continue;
    }
    Expr c = Coordinate(transform, a, out[a.axis]);
    if (transform == "tf_crop_and_resize") {
      Expr bad = Or(Lt(c, F(0)), Gt(c, (a.in - 1).e));
      outside = outside ? Or(outside, bad) : bad;
    }
    taps.push_back(Taps(*op.node, a, c));
  }
  // Sum over the product of taps, innermost axis first: an odometer over tap numbers.
  std::vector<size_t> digit(axes.size(), 0);
  Expr sum;
  for (;;) {
    Indices in = out;
    Expr weight;
    for (size_t i = 0; i < axes.size(); ++i) {
      const Tap& tap = taps[i][digit[i]];
      in[axes[i].axis] = tap.index;
      if (tap.weight) weight = weight ? weight * tap.weight : tap.weight;
    }
    Expr element = op.in[0].at(in);
    if (weight) element = element * CastExpr::Make(element->dtype, weight);
    sum = sum ? sum + element : element;
    size_t i = axes.size();
    while (i > 0 && ++digit[i - 1] == taps[i - 1].size()) digit[--i] = 0;
    if (i == 0) break;
  }
  if (outside) {
    sum = Select::Make(outside,
                       MakeConst(sum->dtype, op.node->attrs.GetFloat("extrapolation_value")), sum);
  }
  return sum;
}

}  // namespace tenon::ops
