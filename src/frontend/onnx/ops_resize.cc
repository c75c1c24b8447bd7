// Resize and its ancestor Upsample.
#include <cmath>

#include "frontend/onnx/ops.h"

namespace tenon::onnx {
namespace {

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
  constexpr int64_t kOne = 1 << 10;
  const double numerator = scale * kOne;
  if (numerator != std::trunc(numerator) || numerator > 0x1p30) {
    return c.Error("expected a known size to scale by {}, but got {}", scale, graph::DimText(dim));
  }
  return graph::DimFloorDiv(graph::DimMul(dim, IndexConst(static_cast<int64_t>(numerator))),
                            IndexConst(kOne));
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

Status Finish(OpContext& c, ResizeSpec spec, Attrs attrs) {
  attrs.Set("scales", std::move(spec.scales));
  attrs.Set("roi", std::move(spec.roi));
  return c.Result(OpKind::kResize, {c.In(0)}, std::move(attrs), {{"sizes", std::move(spec.sizes)}});
}

std::vector<int64_t> AllAxes(const OpContext& c) {
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < c.Rank(0); ++i) axes.push_back(i);
  return axes;
}

// Until opset 10: scales only, and coordinates o / s.
Status ResizeAsymmetric(OpContext& c, const std::vector<double>& scales) {
  TN_ASSIGN_OR_RETURN(std::string mode, c.String("mode", "nearest"));
  TN_ASSIGN_OR_RETURN(ResizeSpec spec, FromScales(c, scales, AllAxes(c)));
  return Finish(c, std::move(spec),
                {{"mode", mode == "bilinear" ? std::string("linear") : mode},
                 {"coordinates", std::string("asymmetric")},
                 {"nearest", std::string("floor")}});
}

Status ImportUpsample7(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(std::optional<std::vector<double>> scales, c.Floats("scales"));
  if (!scales) return c.Error("expected the attribute scales, but it is missing");
  return ResizeAsymmetric(c, *scales);
}

Status ImportResize10(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 2));
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
  ResizeSpec spec;
  if (by_scales) {
    TN_ASSIGN_OR_RETURN(std::vector<double> scales, c.KnownFloats(2, "scales"));
    TN_ASSIGN_OR_RETURN(spec, FromScales(c, scales, axes));
  } else {
    TN_ASSIGN_OR_RETURN(Elements sizes, c.Known(3, "sizes"));
    TN_ASSIGN_OR_RETURN(spec, FromSizes(c, sizes, axes, policy));
  }
  if (attrs.GetString("coordinates") == "tf_crop_and_resize") {
    TN_ASSIGN_OR_RETURN(spec.roi, ReadRoi(c, axes));
  }
  return Finish(c, std::move(spec), std::move(attrs));
}

constexpr OpRow kRows[] = {
    {"Upsample", 7, ImportUpsample7},
    {"Upsample", 9, ImportResize10},
    {"Resize", 10, ImportResize10},
    {"Resize", 11, ImportResize},
};

}  // namespace

std::span<const OpRow> ResizeRows() { return kRows; }

}  // namespace tenon::onnx
