// Resize and its ancestor Upsample.
//
// Where sizes, scales and the region are known, this is one operator of the graph, which has all
// versions and modes of the specification as attributes. Where they come with the call, it is a
// formula: for each axis the coordinate of each result in the input, the elements around it, which
// are gathered, and their weights. With x: f32[1, 1, 4, 4] and run-time sizes, linear,
//
//   c = (o + ½) / scale - ½,  at = floor(c) + [0, 1],  y = Σ over the last axis of
//   gather(x, at) · max(0, 1 - |at - c|)
//
// axis by axis. Antialiasing takes more elements by a number that the call tells, too.
#include <cmath>

#include "frontend/onnx/call_sizes.h"
#include "frontend/onnx/index_checks.h"
#include "frontend/onnx/ops.h"

namespace tenon::onnx {
namespace {

constexpr DType kF32 = DType::Float(32);

constexpr int64_t kOne = 1 << 10;
// Whether a size times this is a quotient of whole numbers.
bool IsBinaryFraction(double scale) {
  return scale * kOne == std::trunc(scale * kOne) && scale * kOne <= 0x1p30;
}

// floor(dim · scale), computed in float as the specification's own shape inference does. A symbolic
// dim needs a scale that is a small binary fraction.
Expected<Expr> Scaled(const OpContext& c, const Expr& dim, double scale) {
  if (!(scale > 0) || !std::isfinite(scale))
    return c.Error("expected finite scales above 0, but got {}", scale);
  if (std::optional<int64_t> n = AsInt(dim)) {
    const float size = std::floor(static_cast<float>(*n) * static_cast<float>(scale));
    if (!(size < 0x1p40f))
      return c.Error("expected a sensible size, but dim {} times scale {} is {}", *n, scale, size);
    return IndexConst(static_cast<int64_t>(size));
  }
  if (!IsBinaryFraction(scale))
    return c.Error("expected a known size to scale by {}, but got {}", scale, graph::DimText(dim));
  const Expr numerator = IndexConst(static_cast<int64_t>(scale * kOne));
  return graph::DimFloorDiv(graph::DimMul(dim, numerator), IndexConst(kOne));
}

struct ResizeSpec {
  std::vector<Expr> sizes;     // all axes
  std::vector<double> scales;  // all axes, or empty
  std::vector<double> roi;     // all axes twice, or empty
};

Expected<ResizeSpec> FromScales(const OpContext& c, const std::vector<double>& scales,
                                const std::vector<int64_t>& axes) {
  if (scales.size() != axes.size())
    return c.Error("expected {} scales, but got {}", axes.size(), scales.size());
  ResizeSpec spec{c.Dims(0), std::vector<double>(c.Dims(0).size(), 1.0), {}};
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t at = static_cast<size_t>(axes[i]);
    spec.scales[at] = scales[i];
    TN_ASSIGN_OR_RETURN(spec.sizes[at], Scaled(c, c.Dims(0)[at], scales[i]));
  }
  return spec;
}

// Sizes that keep the aspect ratio: one scale for all axes, and sizes rounded, halves up.
Expected<ResizeSpec> KeepAspect(const OpContext& c, const Elements& sizes,
                                const std::vector<int64_t>& axes, bool larger) {
  double scale = larger ? 0 : INFINITY;
  for (size_t i = 0; i < axes.size(); ++i) {
    std::optional<int64_t> size = AsInt(sizes[i]),
                           dim = AsInt(c.Dims(0)[static_cast<size_t>(axes[i])]);
    if (!size || !dim || *dim == 0)
      return c.Error("keep_aspect_ratio_policy needs known sizes, but got {}",
                     c.Type(0).ToString());
    const double ratio = static_cast<double>(*size) / static_cast<double>(*dim);
    scale = larger ? std::max(scale, ratio) : std::min(scale, ratio);
  }
  ResizeSpec spec{c.Dims(0), std::vector<double>(c.Dims(0).size(), 1.0), {}};
  for (int64_t axis : axes) {
    const size_t at = static_cast<size_t>(axis);
    const double size = std::floor(scale * static_cast<double>(*AsInt(c.Dims(0)[at])) + 0.5);
    if (!(size < 0x1p40)) return c.Error("expected sensible sizes, but got {}", size);
    spec.sizes[at] = IndexConst(static_cast<int64_t>(size));
    spec.scales[at] = scale;
  }
  return spec;
}

Expected<ResizeSpec> FromSizes(const OpContext& c, const Elements& sizes,
                               const std::vector<int64_t>& axes, const std::string& policy) {
  if (sizes.size() != axes.size())
    return c.Error("expected {} sizes, but got {}", axes.size(), sizes.size());
  if (policy == "not_larger" || policy == "not_smaller")
    return KeepAspect(c, sizes, axes, policy == "not_smaller");
  if (policy != "stretch")
    return c.Error(
        "expected keep_aspect_ratio_policy stretch, not_larger or not_smaller, but got {}",
        graph::Quoted(policy));
  ResizeSpec spec{c.Dims(0), {}, {}};
  for (size_t i = 0; i < axes.size(); ++i) spec.sizes[static_cast<size_t>(axes[i])] = sizes[i];
  return spec;
}

// What lies between elements of integers is cut off to one, as in ONNX's own evaluator; it may lie
// outside of the type.
Val AsElements(const Val& y, DType type) {
  if (!type.IsInt() || y.dtype() == type) return Cast(y, type);
  const double most = std::ldexp(1.0, std::min(type.bits - (type.IsSigned() ? 1 : 0), 31)) - 1;
  return Cast(Max(Min(y, most), type.IsSigned() ? -most - 1 : 0), type);
}

Status Finish(OpContext& c, ResizeSpec spec, Attrs attrs) {
  attrs.Set("scales", std::move(spec.scales));
  attrs.Set("roi", std::move(spec.roi));
  const Formula f(c);
  const bool moves = attrs.GetString("mode") == "nearest";
  const Val x = f.In(0);
  const Val y = f.Emit(OpKind::kResize, {moves || x.dtype().IsFloat() ? x : Cast(x, kF32)},
                       std::move(attrs), {{"sizes", std::move(spec.sizes)}});
  return f.Result(AsElements(y, x.dtype()));
}

// ---- By the call. ----

/// One axis that is resized, in scalars of f32; `size` is its size afterwards.
struct AxisByCall {
  int64_t axis;
  Expr size;
  Val in, scale, whole;  // whole: the size before it was rounded
  Val roi_begin, roi_end;
  double known_scale = 0;  // 0: it comes with the call
};

// Where each result lies in the input, by the coordinate transformation.
Val Coordinates(const AxisByCall& a, const std::string& mode) {
  const Formula& f = a.in.formula();
  const Val o = f.Iota(a.size, kF32), last = a.in - 1, whole_last = a.whole - 1;
  const Val one = Equal(a.whole, 1);
  if (mode == "asymmetric") return o / a.scale;
  if (mode == "align_corners") return Where(one, 0, o * last / whole_last);
  if (mode == "tf_half_pixel_for_nn") return (o + 0.5) / a.scale;
  if (mode == "tf_crop_and_resize") {
    const Val reach = (a.roi_end - a.roi_begin) * last / whole_last;
    return Where(one, (a.roi_begin + a.roi_end) / 2 * last, a.roi_begin * last + o * reach);
  }
  Val half = (o + 0.5) / a.scale - 0.5;
  if (mode == "pytorch_half_pixel") return Where(one, 0, half);
  if (mode != "half_pixel_symmetric") return half;
  const Val size = Cast(Size(o, 0), kF32);
  return half + a.in / 2 * (1 - size / a.whole);
}

Val Nearest(const Val& c, const std::string& rule) {
  if (rule == "floor") return Floor(c);
  if (rule == "ceil") return Apply(OpKind::kCeil, c);
  return rule == "round_prefer_ceil" ? Floor(c + 0.5) : Apply(OpKind::kCeil, c - 0.5);
}

// Keys' cubic kernel, or a triangle, at a distance.
Val Kernel(const Val& distance, bool cubic, double a) {
  const Val t = Abs(distance);
  if (!cubic) return Max(1 - t, 0);
  const Val near = (t * (a + 2) - (a + 3)) * t * t + 1;
  const Val far = ((t * a - 5 * a) * t + 8 * a) * t - 4 * a;
  return Where(t <= 1, near, Where(t < 2, far, 0));
}

Val ResizeAxis(const Val& x, const AxisByCall& a, const Attrs& attrs) {
  const std::string mode = attrs.GetString("mode"), transform = attrs.GetString("coordinates");
  const Val c = Coordinates(a, transform), last = a.in - 1;
  const auto clamped = [&](const Val& at) { return Cast(Max(Min(at, last), 0), DType::Int(64)); };
  Val y;
  if (mode == "nearest") {
    y = Gather(x, clamped(Nearest(c, attrs.GetString("nearest"))), a.axis);
  } else {
    const bool cubic = mode == "cubic", antialias = attrs.Get<bool>("antialias", false);
    const bool drop_outside = attrs.Get<bool>("exclude_outside", false);
    const Formula& f = x.formula();
    const double kernel = cubic ? 2 : 1;
    const Val stretch = antialias ? Min(a.scale, 1) : f.Number(kF32, 1);
    const Val reach = Apply(OpKind::kCeil, kernel / stretch);
    const double known = antialias ? std::min(a.known_scale, 1.0) : 1;
    const Expr taps =
        known > 0
            ? IndexConst(2 * static_cast<int64_t>(std::ceil(std::min(kernel / known, 0x1p38))))
            : SizeOf(Cast(reach * 2, DType::Int(64)));
    const Val center = Unsqueeze(c, 1);
    const Val at = Floor(center) + (f.Iota(taps, kF32) + 1 - reach);
    Val weight = Kernel((at - center) * stretch, cubic, attrs.GetFloat("cubic_coeff_a"));
    if (drop_outside) weight = Where((at >= 0) & (at <= last), weight, 0);
    if (drop_outside || antialias) weight = weight / Sum(weight, {1});
    for (int64_t k = a.axis + 1; k < x.rank(); ++k) weight = Unsqueeze(weight, -1);
    y = Sum(Gather(x, clamped(at), a.axis) * Cast(weight, x.dtype()), {a.axis + 1}, false);
  }
  if (transform != "tf_crop_and_resize") return y;
  Val outside = (c < 0) | (c > last);
  for (int64_t k = a.axis + 1; k < x.rank(); ++k) outside = Unsqueeze(outside, -1);
  return Where(outside, attrs.GetFloat("extrapolation_value"), y);
}

// Scales that come with the call, those of input `i`; others than finite numbers above 0 are an
// error of it.
Val ScalesOf(OpContext& c, const Formula& f, size_t i) {
  const Val scales = f.In(i);
  return NoneOf(c, i, scales, Not((scales > 0) & (scales < INFINITY)),
                "entries that are no finite numbers above 0");
}

// One of `scales` and `sizes` is there, a list with an entry for each of `axes`; `roi` for
// tf_crop_and_resize. With a policy other than stretch all axes have one scale.
Status ResizeByCall(OpContext& c, const Attrs& attrs, const Axes& axes, const std::string& policy,
                    const Val& scales, const Val& sizes, const Val& roi) {
  const Formula f(c);
  const auto count = static_cast<int64_t>(axes.size());
  const Val list = scales ? scales : sizes;
  const bool crops = attrs.GetString("coordinates") == "tf_crop_and_resize";
  if (list.rank() != 1 || AsInt(list.dim(0)) != count ||
      (crops && (!roi || roi.rank() != 1 || AsInt(roi.dim(0)) != 2 * count)))
    return c.Error("expected {} scales or sizes, and twice as many entries in a roi", count);
  const auto element = [](const Val& v, int64_t i) { return Cast(Element(v, 0, i), kF32); };
  const Val x = f.In(0);
  Val common;
  for (int64_t i = 0; policy != "stretch" && sizes && i < count; ++i) {
    const Val ratio = element(sizes, i) / Cast(Size(x, axes[static_cast<size_t>(i)]), kF32);
    common = !common ? ratio : policy == "not_larger" ? Min(common, ratio) : Max(common, ratio);
  }
  const bool moves = attrs.GetString("mode") == "nearest" && !crops;
  Val y = moves ? x : x.dtype().IsFloat() ? Widened(x) : Cast(x, kF32);
  for (int64_t i = 0; i < count; ++i) {
    AxisByCall a{axes[static_cast<size_t>(i)], {}, {}, {}, {}, {}, {}, 0};
    a.in = Cast(Size(x, a.axis), kF32);
    if (scales || common) {
      a.scale = scales ? element(scales, i) : common;
      const Val whole = a.in * a.scale, near = Round(whole);
      a.whole = Where(Abs(whole - near) <= near * 1e-6, near, whole);
      a.size = SizeOf(Cast(scales ? Floor(whole) : Floor(whole + 0.5), DType::Int(64)));
    } else {
      a.size = SizeOf(ElementOf(sizes, i));
      a.whole = element(sizes, i);
      a.scale = a.whole / a.in;
    }
    if (crops) {
      a.roi_begin = element(roi, i);
      a.roi_end = element(roi, count + i);
    }
    y = ResizeAxis(y, a, attrs);
  }
  return f.Result(AsElements(y, x.dtype()));
}

// As many elements go into one as the scale says, which may be thousands: a sum, and no operator
// that names each of them.
Status ResizeAntialiased(OpContext& c, const Attrs& attrs, const ResizeSpec& spec) {
  const Formula f(c);
  const Val x = f.In(0);
  Val y = x.dtype().IsFloat() ? Widened(x) : Cast(x, kF32);
  for (int64_t i = 0; i < x.rank(); ++i) {
    const auto at = static_cast<size_t>(i);
    const Val in = Cast(Size(x, i), kF32), size = f.Iota(spec.sizes[at]);
    const std::optional<int64_t> before = AsInt(x.dim(i)), after = AsInt(spec.sizes[at]);
    AxisByCall a{i, spec.sizes[at], in, {}, {}, {}, {}, 0};
    if (!spec.scales.empty()) {
      if (spec.scales[at] == 1) continue;
      a.known_scale = spec.scales[at];
      a.scale = f.Number(kF32, a.known_scale);
      a.whole = in * a.scale;
    } else {
      if (graph::ProveEqual(x.dim(i), spec.sizes[at])) continue;
      a.whole = Cast(Size(size, 0), kF32);
      a.scale = a.whole / in;
      if (before && after && *before > 0)
        a.known_scale = static_cast<double>(*after) / static_cast<double>(*before);
    }
    y = ResizeAxis(y, a, attrs);
  }
  return f.Result(AsElements(y, x.dtype()));
}

std::vector<int64_t> AllAxes(const OpContext& c) {
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < c.Rank(0); ++i) axes.push_back(i);
  return axes;
}

// Until opset 10: scales only, and coordinates o / s.
Expected<Attrs> AsymmetricModes(OpContext& c) {
  TN_ASSIGN_OR_RETURN(std::string mode, c.String("mode", "nearest"));
  return Attrs{{"mode", mode == "bilinear" ? std::string("linear") : mode},
               {"coordinates", std::string("asymmetric")},
               {"nearest", std::string("floor")}};
}

Status ResizeAsymmetric(OpContext& c, const std::vector<double>& scales) {
  TN_ASSIGN_OR_RETURN(Attrs modes, AsymmetricModes(c));
  TN_ASSIGN_OR_RETURN(ResizeSpec spec, FromScales(c, scales, AllAxes(c)));
  return Finish(c, std::move(spec), std::move(modes));
}

// Of images, by one scale for rows and one for columns.
Status ImportUpsample1(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  if (c.Rank(0) != 4)
    return c.Error("expected an image [N, C, H, W], but got {}", c.Type(0).ToString());
  TN_ASSIGN_OR_RETURN(const double height, c.Float("height_scale", 0));
  TN_ASSIGN_OR_RETURN(const double width, c.Float("width_scale", 0));
  return ResizeAsymmetric(c, {1, 1, height, width});
}

Status ImportUpsample7(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(std::optional<std::vector<double>> scales, c.Floats("scales"));
  if (!scales) return c.Error("expected the attribute scales, but it is missing");
  return ResizeAsymmetric(c, *scales);
}

bool IsConstant(const OpContext& c, size_t i) { return c.b.graph().value(c.In(i)).IsConstant(); }

Status ImportResize10(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 2));
  TN_RETURN_IF_ERROR(c.Fix(1, 0, c.Rank(0)));
  if (!IsConstant(c, 1)) {
    TN_ASSIGN_OR_RETURN(const Attrs modes, AsymmetricModes(c));
    const Formula f(c);
    return ResizeByCall(c, modes, AllAxes(c), "stretch", ScalesOf(c, f, 1), {}, {});
  }
  TN_ASSIGN_OR_RETURN(std::vector<double> scales, c.KnownFloats(1, "scales"));
  return ResizeAsymmetric(c, scales);
}

// An optional input may also be given as an empty tensor.
bool Given(const OpContext& c, size_t i) { return c.Has(i) && graph::StaticCount(c.Dims(i)) != 0; }

Expected<std::vector<double>> ReadRoi(const OpContext& c, const std::vector<int64_t>& axes) {
  if (!Given(c, 1)) return c.Error("expected roi for tf_crop_and_resize, but it is left out");
  TN_ASSIGN_OR_RETURN(std::vector<double> given, c.KnownFloats(1, "roi"));
  const size_t n = axes.size(), rank = c.Dims(0).size();
  if (given.size() != 2 * n)
    return c.Error("expected {} entries in roi, but got {}", 2 * n, given.size());
  std::vector<double> roi(2 * rank, 0.0);
  std::fill(roi.begin() + static_cast<ptrdiff_t>(rank), roi.end(), 1.0);
  for (size_t i = 0; i < n; ++i) {
    roi[static_cast<size_t>(axes[i])] = given[i];
    roi[rank + static_cast<size_t>(axes[i])] = given[n + i];
  }
  return roi;
}

Expected<Attrs> ReadModes(OpContext& c) {
  TN_ASSIGN_OR_RETURN(std::string mode, c.String("mode", "nearest"));
  TN_ASSIGN_OR_RETURN(std::string coordinates,
                      c.String("coordinate_transformation_mode", "half_pixel"));
  TN_ASSIGN_OR_RETURN(std::string nearest, c.String("nearest_mode", "round_prefer_floor"));
  TN_ASSIGN_OR_RETURN(double coefficient, c.Float("cubic_coeff_a", -0.75));
  TN_ASSIGN_OR_RETURN(double extrapolation, c.Float("extrapolation_value", 0));
  TN_ASSIGN_OR_RETURN(bool exclude_outside, c.Bool("exclude_outside", false));
  Attrs attrs = {{"mode", mode},
                 {"coordinates", coordinates},
                 {"nearest", nearest},
                 {"cubic_coeff_a", coefficient},
                 {"extrapolation_value", extrapolation},
                 {"exclude_outside", exclude_outside}};
  if (c.opset >= 18) {
    TN_ASSIGN_OR_RETURN(bool antialias, c.Bool("antialias", false));
    attrs.Set("antialias", antialias);
  }
  return attrs;
}

// Whether sizes are no expressions of open ones, though scales or sizes are known.
bool NeedsCall(const OpContext& c, const std::vector<int64_t>& axes, bool by_scales,
               const std::string& policy) {
  const auto scales = by_scales ? graph::ReadFloats(c.b.graph().value(c.In(2))) : std::nullopt;
  const Elements* sizes = by_scales ? nullptr : c.b.Known(c.In(3));
  for (size_t i = 0; i < axes.size(); ++i) {
    const bool open = !AsInt(c.Dims(0)[static_cast<size_t>(axes[i])]);
    if (scales && i < scales->size() && open && !IsBinaryFraction((*scales)[i])) return true;
    if (sizes && i < sizes->size() && policy != "stretch" && (open || !AsInt((*sizes)[i])))
      return true;
  }
  return false;
}

Status ImportResize(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 4));
  TN_ASSIGN_OR_RETURN(Attrs attrs, ReadModes(c));
  std::vector<int64_t> axes = AllAxes(c);
  std::string policy = "stretch";
  if (c.opset >= 18) {
    TN_ASSIGN_OR_RETURN(policy, c.String("keep_aspect_ratio_policy", "stretch"));
    TN_ASSIGN_OR_RETURN(std::optional<std::vector<int64_t>> given, c.Ints("axes"));
    if (given) {
      TN_RETURN_IF_ERROR(c.NormalizeAxes(*given, c.Rank(0),
                                         "axes"));  // distinct; their order is that of the sizes
      axes.clear();
      for (int64_t axis : *given) axes.push_back(axis < 0 ? axis + c.Rank(0) : axis);
    }
  }
  const bool by_scales = Given(c, 2), by_sizes = c.Has(3);
  if (by_scales == by_sizes)
    return c.Error("expected either scales or sizes, but got {}", by_scales ? "both" : "neither");
  const bool crops = attrs.GetString("coordinates") == "tf_crop_and_resize";
  const auto count = static_cast<int64_t>(axes.size());
  TN_RETURN_IF_ERROR(c.Fix(by_scales ? 2 : 3, 0, count));
  if (crops && Given(c, 1)) TN_RETURN_IF_ERROR(c.Fix(1, 0, 2 * count));
  const bool known = by_scales ? IsConstant(c, 2) : c.b.Known(c.In(3)) != nullptr;
  if (!known || (crops && Given(c, 1) && !IsConstant(c, 1)) ||
      NeedsCall(c, axes, by_scales, policy)) {
    const Formula f(c);
    return ResizeByCall(c, attrs, axes, policy, by_scales ? ScalesOf(c, f, 2) : Val(),
                        by_scales ? Val() : f.In(3), Given(c, 1) ? f.In(1) : Val());
  }
  ResizeSpec spec;
  if (by_scales) {
    TN_ASSIGN_OR_RETURN(std::vector<double> scales, c.KnownFloats(2, "scales"));
    TN_ASSIGN_OR_RETURN(spec, FromScales(c, scales, axes));
  } else {
    TN_ASSIGN_OR_RETURN(Elements sizes, c.Known(3, "sizes"));
    TN_ASSIGN_OR_RETURN(spec, FromSizes(c, sizes, axes, policy));
  }
  if (crops) {
    TN_ASSIGN_OR_RETURN(spec.roi, ReadRoi(c, axes));
  }
  if (attrs.Get<bool>("antialias", false) && attrs.GetString("mode") != "nearest" && !crops)
    return ResizeAntialiased(c, attrs, spec);
  return Finish(c, std::move(spec), std::move(attrs));
}

constexpr OpRow kRows[] = {
    {"Upsample", 1, ImportUpsample1}, {"Upsample", 7, ImportUpsample7},
    {"Upsample", 9, ImportResize10},  {"Resize", 10, ImportResize10},
    {"Resize", 11, ImportResize},
};

}  // namespace

std::span<const OpRow> ResizeRows() { return kRows; }

}  // namespace tenon::onnx
