// Images read between their pixels: GridSample, RoiAlign, DeformConv, and the grids of AffineGrid.
//
// A sample lies at one coordinate per spatial axis. Along each axis it is a weighted sum of taps
// (1, 2 or 4 neighbours); over all axes, of the taps' products. Taps are axes of the tensors here:
// with t taps along y and x, places and weights are [N, S, t, t], the pixels are gathered as
// [N, S, t, t, C], and one sum over both axes of taps is the result, whatever t and the number of
// spatial axes are.
#include <algorithm>
#include <cmath>

#include "frontend/onnx/call_sizes.h"
#include "frontend/onnx/index_checks.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/window.h"

namespace tenon::onnx {
namespace {

constexpr DType kI64 = DType::Int(64);

enum class Mode { kNearest, kLinear, kCubic };
enum class Outside { kZeros, kBorder, kReflection };

struct Sampling {
  Mode mode = Mode::kLinear;
  Outside outside = Outside::kZeros;
  bool align_corners = false;
};

// Thrown back at both ends of [lo, hi] until it is inside.
Val Reflected(const Val& x, const Val& lo, const Val& hi) {
  const Val range = Max(hi - lo, 0), turn = range * 2;
  const Val steps = Abs(x - lo);
  const Val left = steps - Floor(steps / Max(turn, 1e-30)) * turn;
  return lo + Min(left, turn - left);
}

// Weight of a tap at distance `s` from a sample (Keys 1981 with a = -0.75).
Val CubicWeight(const Val& s) {
  constexpr double a = -0.75;
  const Val near = ((s * (a + 2)) - (a + 3)) * s * s + 1;
  const Val far = ((s * a - 5 * a) * s + 8 * a) * s - 4 * a;
  return Where(s <= 1, near, Where(s < 2, far, 0));
}

// Of one axis: the taps' places, i64, and weights, both [N, S, t].
struct Taps {
  Val place, weight;
};
Taps TapsOf(const Val& coordinate, const Val& size, const Sampling& s) {
  const Formula& f = coordinate.formula();
  const Val last = size - 1;
  const Val lo = s.align_corners ? size * 0 : size * 0 - 0.5,
            hi = s.align_corners ? last : last + 0.5;
  Val x = s.mode == Mode::kNearest ? Round(coordinate) : coordinate;
  if (s.mode != Mode::kCubic) {  // whose taps alone are brought inside
    const Val beyond = (x < lo) | (x > hi);
    if (s.outside == Outside::kBorder) x = Where(beyond, Max(Min(x, last), 0), x);
    if (s.outside == Outside::kReflection) x = Where(beyond, Reflected(x, lo, hi), x);
  }
  x = Unsqueeze(x, -1);
  const int64_t taps = s.mode == Mode::kNearest ? 1 : s.mode == Mode::kLinear ? 2 : 4;
  const Val number = f.Iota(IndexConst(taps), x.dtype());
  const Val first = s.mode == Mode::kNearest  ? x
                    : s.mode == Mode::kLinear ? Floor(x)
                                              : Floor(x) - 1;
  Val at = first + number;
  const Val distance = Abs(x - at);
  Val weight = s.mode == Mode::kNearest  ? distance * 0 + 1
               : s.mode == Mode::kLinear ? 1 - distance
                                         : CubicWeight(distance);
  if (s.outside == Outside::kZeros) weight = Where((at >= 0) & (at <= last), weight, 0);
  if (s.outside == Outside::kReflection) {
    at = Where((at < lo) | (at > hi), Reflected(at, lo, hi), at);
    at = Apply(OpKind::kSign, at) * Floor(Abs(at));  // the whole part
  }
  return {Cast(Max(Min(at, last), 0), kI64), weight};
}

// Where the pixels around samples are, whose coordinates are [N, S], one for each spatial axis, and
// what they count: both [N, S, t…], a t for each axis, places in all pixels of an image.
Taps TapsOfAll(const Val& x, const std::vector<Val>& coordinates, const Sampling& s) {
  const auto n = static_cast<int64_t>(coordinates.size());
  Taps all;
  for (int64_t a = 0; a < n; ++a) {
    const Val size = Size(x, a + 2);
    Taps taps = TapsOf(coordinates[static_cast<size_t>(a)], Cast(size, coordinates[0].dtype()), s);
    for (int64_t k = 0; k < n; ++k) {  // its own axis among those of the taps
      if (k == a) continue;
      taps.place = Unsqueeze(taps.place, 2 + k);
      taps.weight = Unsqueeze(taps.weight, 2 + k);
    }
    all.place = all.place ? all.place * size + taps.place : taps.place;
    all.weight = all.weight ? all.weight * taps.weight : taps.weight;
  }
  return all;
}

// Pixels of x: [N, C, d…] at such places: [N, S, t…, C].
Val PixelsAt(const Val& x, const Val& place) {
  const Dims dims = x.dims();
  if (dims.size() < 3) return x;
  const Val pixels =
      Swap(Reshape(x, {dims[0], dims[1], graph::DimProduct(std::span(dims).subspan(2))}), 1, 2);
  return GatherNd(pixels, Unsqueeze(place, -1), 1);
}

// Weighted pixels of x around samples. [N, S, t…, C]
Val WeightedTaps(const Val& x, const std::vector<Val>& coordinates, const Sampling& s) {
  const Taps taps = TapsOfAll(x, coordinates, s);
  return PixelsAt(x, taps.place) * Unsqueeze(taps.weight, -1);
}

// [N, C, S]
Val Sampled(const Val& x, const std::vector<Val>& coordinates, const Sampling& s) {
  Axes taps;
  for (size_t a = 0; a < coordinates.size(); ++a) taps.push_back(2 + static_cast<int64_t>(a));
  return Swap(Sum(WeightedTaps(x, coordinates, s), taps, false), 1, 2);
}

// The nearest pixels as they are, of any type, and nothing outside of the image.
Val Picked(const Val& x, const std::vector<Val>& coordinates, const Sampling& s) {
  const Taps taps = TapsOfAll(x, coordinates, s);
  Dims dims = coordinates[0].dims();
  dims.push_back(x.dim(1));
  const Val pixels = Reshape(PixelsAt(x, taps.place), dims);
  if (s.outside != Outside::kZeros) return Swap(pixels, 1, 2);
  dims.back() = IndexConst(1);
  const Val inside = Reshape(taps.weight > 0, dims);
  return Swap(Where(inside, pixels, x.formula().Number(x.dtype(), 0)), 1, 2);
}

// ---- GridSample, AffineGrid: coordinates from -1 to 1, the last axis first ----

Status ImportGridSample(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 2));
  TN_ASSIGN_OR_RETURN(const std::string mode,
                      c.String("mode", c.opset < 20 ? "bilinear" : "linear"));
  TN_ASSIGN_OR_RETURN(const std::string outside, c.String("padding_mode", "zeros"));
  Sampling s;
  TN_ASSIGN_OR_RETURN(s.align_corners, c.Bool("align_corners", false));
  const bool linear = mode == "linear" || mode == "bilinear",
             cubic = mode == "cubic" || mode == "bicubic";
  if (!linear && !cubic && mode != "nearest")
    return c.Error("expected mode linear, nearest or cubic, but got {}", graph::Quoted(mode));
  s.mode = linear ? Mode::kLinear : cubic ? Mode::kCubic : Mode::kNearest;
  if (outside != "zeros" && outside != "border" && outside != "reflection")
    return c.Error("expected padding_mode zeros, border or reflection, but got {}",
                   graph::Quoted(outside));
  s.outside = outside == "zeros"    ? Outside::kZeros
              : outside == "border" ? Outside::kBorder
                                    : Outside::kReflection;
  const int64_t n = c.Rank(0) - 2;
  TN_RETURN_IF_ERROR(c.Fix(1, -1, n));
  if (n < 1 || n > 4 || c.Rank(1) != c.Rank(0) || AsInt(c.Dims(1).back()) != n) {
    return c.Error(
        "expected an image [N, C, d…] and a grid [N, o…, as many as d…], but got {} and {}",
        c.Type(0).ToString(), c.Type(1).ToString());
  }
  const Formula f(c);
  const DType type = c.Type(0).dtype;
  const bool wide = type == DType::Float(64) || c.Type(1).dtype == DType::Float(64);
  const DType each = DType::Float(wide ? 64 : 32);
  const bool picks = s.mode == Mode::kNearest;
  const Val x = picks ? f.In(0) : Cast(f.In(0), each), grid = Cast(f.In(1), each);
  const Dims out = grid.dims();
  const Expr samples = graph::DimProduct(std::span(out).subspan(1, static_cast<size_t>(n)));
  std::vector<Val> coordinates;
  for (int64_t a = 0; a < n; ++a) {
    const Val g = Reshape(Element(grid, -1, n - 1 - a), {out[0], samples});
    const Val size = Cast(Size(x, a + 2), g.dtype());
    coordinates.push_back(s.align_corners ? (g + 1) / 2 * (size - 1) : ((g + 1) * size - 1) / 2);
  }
  Dims dims = {out[0], c.Dims(0)[1]};
  dims.insert(dims.end(), out.begin() + 1, out.end() - 1);
  const Val sampled = picks ? Picked(x, coordinates, s) : Sampled(x, coordinates, s);
  return f.Result(Cast(Reshape(sampled, dims), type));
}

// theta: [N, n, n + 1] applied to the points (x, y, 1) of an image.
Status ImportAffineGrid(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 2));
  TN_ASSIGN_OR_RETURN(const bool align_corners, c.Bool("align_corners", false));
  TN_ASSIGN_OR_RETURN(const Elements size, SizesOf(c, 1, "a size", c.DeclaredRank(0)));
  const auto n = static_cast<int64_t>(size.size()) - 2;
  TN_RETURN_IF_ERROR(c.Fix(0, 1, n));
  TN_RETURN_IF_ERROR(c.Fix(0, 2, n + 1));
  if (n < 1 || n > 4 || c.Rank(0) != 3 || AsInt(c.Dims(0)[1]) != n ||
      AsInt(c.Dims(0)[2]) != n + 1) {
    return c.Error("expected matrices [N, {}, {}] for a size of {} dims, but got {}", n, n + 1,
                   size.size(), c.Type(0).ToString());
  }
  const Formula f(c);
  const Val theta = Widened(f.In(0));
  const Dims space(size.begin() + 2, size.end());
  Val grid;
  for (int64_t k = 0; k < n; ++k) {  // axis n - 1 - k of the image is coordinate k
    const auto axis = static_cast<size_t>(n - 1 - k);
    const Val at = f.Iota(space[axis], theta.dtype());
    const Val count = Cast(Size(at, 0), theta.dtype());
    const Val point = align_corners ? at * 2 / Max(count - 1, 1) - 1 : (at * 2 + 1) / count - 1;
    Dims dims(space.size() + 1, IndexConst(1));
    dims[axis] = space[axis];
    const Val all = Expand(Reshape(point, dims), [&] {
      Dims whole = space;
      whole.push_back(IndexConst(1));
      return whole;
    }());
    grid = grid ? Concat({grid, all}, -1) : all;
  }
  const Expr points = graph::DimProduct(space), one = IndexConst(1);
  grid = Reshape(grid, {points, IndexConst(n)});
  const Val turned = MatMul(grid, Slice(theta, 2, IndexConst(0), IndexConst(n)), false, true);
  const Val moved =
      turned + Reshape(Slice(theta, 2, IndexConst(n), one), {theta.dim(0), one, IndexConst(n)});
  Dims out = {theta.dim(0)};
  out.insert(out.end(), space.begin(), space.end());
  out.push_back(IndexConst(n));
  return f.Result(Cast(Reshape(moved, out), c.Type(0).dtype));
}

// ---- RoiAlign ----

// The samples of all regions along one axis. Where each region has a number of its own, there is
// room for the most, and `there` says which of them there are.
struct BinSamples {
  Expr count;
  Val own;    // [R]; left out: all have `count`
  Val at;     // coordinates, [R, P, S]: S of them in each of P bins
  Val there;  // [R, S]
};

// 0 samples: as many as a bin is long.
BinSamples SamplesAlong(const Val& begin, const Val& length, int64_t bins, int64_t samples) {
  const Formula& f = begin.formula();
  const auto cell = [](const Val& v) { return Unsqueeze(Unsqueeze(v, 1), 1); };
  const Val size = length / static_cast<double>(bins);
  BinSamples s{IndexConst(samples), {}, {}, {}};
  if (samples == 0) {
    s.own = Apply(OpKind::kCeil, size);
    s.count = SizeOf(Cast(Max(Reduce("max", s.own, {0}, false), 1), kI64));
  }
  const Val number = f.Iota(s.count, begin.dtype());
  const Val sample =
      s.own ? (number + 0.5) / cell(Max(s.own, 1)) : (number + 0.5) / static_cast<double>(samples);
  if (s.own) s.there = number < Unsqueeze(s.own, 1);
  const Val bin = Unsqueeze(f.Iota(IndexConst(bins), begin.dtype()), 1);
  s.at = cell(begin) + (bin + sample) * cell(size);
  return s;
}

struct RoiForm {
  bool average = true, half = true;  // of all samples or their largest; pixels at halves
  int64_t height = 1, width = 1, samples = 1;
  double scale = 1;
};

Expected<RoiForm> ReadRoiForm(OpContext& c) {
  RoiForm r;
  TN_ASSIGN_OR_RETURN(const std::string mode, c.String("mode", "avg"));
  TN_ASSIGN_OR_RETURN(r.height, c.Int("output_height", 1));
  TN_ASSIGN_OR_RETURN(r.width, c.Int("output_width", 1));
  TN_ASSIGN_OR_RETURN(r.samples, c.Int("sampling_ratio", 0));
  TN_ASSIGN_OR_RETURN(r.scale, c.Float("spatial_scale", 1));
  std::string pixels = "output_half_pixel";
  if (c.opset >= 16) {
    TN_ASSIGN_OR_RETURN(pixels, c.String("coordinate_transformation_mode", "half_pixel"));
  }
  r.average = mode == "avg";
  r.half = pixels == "half_pixel";
  if (!r.half && pixels != "output_half_pixel") {
    return c.Error(
        "expected coordinate_transformation_mode half_pixel or output_half_pixel, but got {}",
        graph::Quoted(pixels));
  }
  if (mode != "avg" && mode != "max")
    return c.Error("expected mode avg or max, but got {}", graph::Quoted(mode));
  constexpr int64_t kMost = 1 << 12;
  if (r.height < 1 || r.width < 1 || r.height > kMost || r.width > kMost || r.samples > kMost)
    return c.Error("expected a sensible output, but got {} x {} of {} samples", r.height, r.width,
                   r.samples);
  r.samples = std::max<int64_t>(r.samples, 0);
  return r;
}

Status ImportRoiAlign(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(3, 3));
  TN_ASSIGN_OR_RETURN(const RoiForm r, ReadRoiForm(c));
  TN_RETURN_IF_ERROR(c.Fix(1, 1, 4));
  if (c.Rank(0) != 4 || c.Rank(1) != 2 || AsInt(c.Dims(1)[1]) != 4 || c.Rank(2) != 1) {
    return c.Error(
        "expected an image [N, C, H, W], regions [R, 4] and their images [R], but got {}, {} and "
        "{}",
        c.Type(0).ToString(), c.Type(1).ToString(), c.Type(2).ToString());
  }
  const Formula f(c);
  const Val x = Widened(f.In(0)), rois = Widened(f.In(1)) * r.scale - (r.half ? 0.5 : 0.0);
  std::vector<BinSamples> axis;  // y, x
  for (int64_t k = 0; k < 2; ++k) {
    const Val begin = Element(rois, 1, 1 - k);
    const Val length = Element(rois, 1, 3 - k) - begin;
    axis.push_back(SamplesAlong(begin, r.half ? length : Max(length, 1),
                                k == 0 ? r.height : r.width, r.samples));
  }
  // All pairs, [R, Py, Px, Sy, Sx]; what lies more than a pixel outside is 0.
  Val y = Unsqueeze(Unsqueeze(axis[0].at, 2), 4), u = Unsqueeze(Unsqueeze(axis[1].at, 1), 3);
  Dims all = y.dims();
  if (all.size() != 5) return f.Done();
  all[2] = IndexConst(r.width);
  all[4] = axis[1].count;
  const Expr cells = graph::DimMul(axis[0].count, axis[1].count);
  Val inside;
  std::vector<Val> coordinates;
  const Expr regions = rois.dim(0), bins = IndexConst(r.height * r.width),
             count = graph::DimMul(bins, cells);
  for (int64_t k = 0; k < 2; ++k) {
    const Val at =
        Reshape(Expand(k == 0 ? y : u, all), {IndexConst(1), graph::DimMul(regions, count)});
    const Val size = Cast(Size(x, k + 2), at.dtype());
    const Val good = (at >= -1) & (at <= size);
    inside = inside ? inside & good : good;
    coordinates.push_back(Max(Min(at, size - 1), 0));
  }
  const Taps taps = TapsOfAll(x, coordinates, {Mode::kLinear, Outside::kBorder, true});
  // Regions pick their images: the images side by side are one.
  const Expr one = IndexConst(1), each = IndexConst(4), near = graph::DimMul(cells, each);
  const Val image =
      Reshape(Expand(Unsqueeze(InRange(c, 2, f.In(2), x.dim(0)), 1), {regions, count}),
              {one, graph::DimMul(regions, count), one, one});
  const Val place = image * Size(x, 2) * Size(x, 3) + taps.place;
  // [regions, bins, pixels near the samples of a bin, channels]
  Val weight = Reshape(Where(Unsqueeze(Unsqueeze(inside, -1), -1), taps.weight, 0),
                       {regions, bins, near, one});
  Val own, many;  // of the samples, those that a region has, and how many
  if (r.samples == 0) {
    own = Reshape(Unsqueeze(axis[0].there, 2) & Unsqueeze(axis[1].there, 1),
                  {regions, one, cells, one});
    own = Reshape(Expand(own, {regions, one, cells, each}), {regions, one, near, one});
    many = Unsqueeze(Unsqueeze(Max(axis[0].own, 0) * Max(axis[1].own, 0), 1), 1);
    if (r.average) weight = Where(own, weight, 0);
  }
  const Val pixels =
      Reshape(Transpose(x, {0, 2, 3, 1}),
              {graph::DimMul(x.dim(0), graph::DimMul(x.dim(2), x.dim(3))), x.dim(1)});
  Val out = Gather(pixels, Reshape(place, {regions, bins, near}), 0) * weight;
  // A region without samples is 0.
  if (r.average) {
    out = Sum(out, {2}, false);
    out = many ? out / Max(many, 1) : out / Cast(NumberOf(f, cells), out.dtype());
  } else {
    out = Reduce("max", own ? Where(own, out, -INFINITY) : out, {2}, false);
    if (many) out = Where(many > 0, out, 0);
  }
  out = Reshape(Swap(out, 1, 2), {regions, x.dim(1), IndexConst(r.height), IndexConst(r.width)});
  return f.Result(Cast(out, c.Type(0).dtype));
}

// ---- DeformConv: a convolution whose taps are moved by offsets, as a product of samples ----

// [taps]: the index along an axis of each tap of a kernel.
Val TapAlong(const Formula& f, const Dims& kernel, size_t axis) {
  const Expr inner = graph::DimProduct(std::span(kernel).subspan(axis + 1));
  return Mod(f.Iota(graph::DimProduct(kernel)) / NumberOf(f, inner), NumberOf(f, kernel[axis]));
}

// [points]: the index along an axis of each element of a result.
Val PointAlong(const Formula& f, const Dims& out, size_t axis) {
  Dims along(out.size(), IndexConst(1));
  along[axis] = out[axis];
  return Reshape(Expand(Reshape(f.Iota(out[axis]), along), out), {graph::DimProduct(out)});
}

Status ImportDeformConv(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(3, 5));
  TN_ASSIGN_OR_RETURN(const std::optional<Axes> kernel_shape, c.Ints("kernel_shape"));
  TN_ASSIGN_OR_RETURN(const std::optional<Axes> strides, c.Ints("strides"));
  TN_ASSIGN_OR_RETURN(const std::optional<Axes> dilations, c.Ints("dilations"));
  TN_ASSIGN_OR_RETURN(const std::optional<Axes> pads, c.Ints("pads"));
  TN_ASSIGN_OR_RETURN(const int64_t group, c.Int("group", 1));
  TN_ASSIGN_OR_RETURN(const int64_t offset_group, c.Int("offset_group", 1));
  TN_RETURN_IF_ERROR(FixKernel(c, 1));
  const Dims given = c.Dims(0), w = c.Dims(1);
  const size_t n = given.size() < 3 ? 0 : given.size() - 2;
  if (n < 1 || n > 4 || c.Rank(1) != c.Rank(0) || c.Rank(2) != c.Rank(0) ||
      (strides && strides->size() != n) || (dilations && dilations->size() != n) ||
      (pads && pads->size() != 2 * n)) {
    return c.Error(
        "expected an image, a weight and offsets of one rank of 3 to 6, but got {}, {} and {}",
        c.Type(0).ToString(), c.Type(1).ToString(), c.Type(2).ToString());
  }
  const Expr channels = given[1], maps = w[0];
  const Expr groups = IndexConst(std::max<int64_t>(group, 1)),
             fields = IndexConst(std::max<int64_t>(offset_group, 1));
  const Expr per_group = graph::DimFloorDiv(channels, groups),
             maps_each = graph::DimFloorDiv(maps, groups),
             per_field = graph::DimFloorDiv(channels, fields);
  const std::pair<Expr, Expr> facts[] = {{graph::DimMul(per_group, groups), channels},
                                         {graph::DimMul(maps_each, groups), maps},
                                         {graph::DimMul(per_field, fields), channels},
                                         {w[1], per_group}};
  for (const auto& [is, should] : facts) {
    if (group < 1 || offset_group < 1 || graph::ProveDifferent(is, should)) {
      return c.Error(
          "expected channels and maps in {} groups and {} offset groups, but got {} and {}", group,
          offset_group, c.Type(0).ToString(), c.Type(1).ToString());
    }
    c.b.Require(Eq(is, should));
  }
  const Dims kernel(w.begin() + 2, w.end());
  TN_RETURN_IF_ERROR(CheckKernel(c, kernel_shape, kernel));
  const Formula f(c);
  const Val x = Widened(f.In(0));
  const Expr taps = graph::DimProduct(kernel);
  const Dims out(c.Dims(2).begin() + 2, c.Dims(2).end());
  const Expr points = graph::DimProduct(out), batch = given[0];
  const Expr images = graph::DimMul(batch, fields), samples = graph::DimMul(taps, points);
  // Offsets [N, fields, taps, n, o…] to [N · fields, taps, n, o].
  const Val offsets =
      Reshape(Widened(f.In(2)), {images, taps, IndexConst(static_cast<int64_t>(n)), points});
  std::vector<Val> coordinates;
  for (size_t a = 0; a < n; ++a) {
    const int64_t stride = strides ? (*strides)[a] : 1, dilation = dilations ? (*dilations)[a] : 1;
    const Val tap = TapAlong(f, kernel, a) * static_cast<double>(dilation);
    const Val base = PointAlong(f, out, a) * static_cast<double>(stride) + Unsqueeze(tap, 1) -
                     static_cast<double>(pads ? (*pads)[a] : 0);
    const Val at = Element(offsets, 2, static_cast<int64_t>(a)) + Cast(base, x.dtype());
    coordinates.push_back(Reshape(at, {images, samples}));
  }
  Dims field = x.dims();
  field[0] = images;
  field[1] = per_field;
  Val columns = Sampled(Reshape(x, field), coordinates, Sampling{});
  if (const Val mask = f.In(4))
    columns = columns * Reshape(Widened(mask), {images, IndexConst(1), samples});
  const Expr depth = graph::DimMul(per_group, taps);
  columns = Reshape(columns, {batch, groups, depth, points});
  const Val weight = Reshape(Widened(f.In(1)), {groups, maps_each, depth});
  Dims shape = {batch, maps};
  shape.insert(shape.end(), out.begin(), out.end());
  Val y = Reshape(MatMul(weight, columns), shape);
  if (const Val bias = f.In(3)) {
    Dims per_map(n + 1, IndexConst(1));
    per_map[0] = maps;
    y = y + Reshape(Widened(bias), per_map);
  }
  return f.Result(Cast(y, c.Type(0).dtype));
}

constexpr OpRow kRows[] = {
    {"GridSample", 16, ImportGridSample},
    {"AffineGrid", 20, ImportAffineGrid},
    {"RoiAlign", 10, ImportRoiAlign},
    {"DeformConv", 19, ImportDeformConv},
};

}  // namespace

std::span<const OpRow> SamplingRows() { return kRows; }

}  // namespace tenon::onnx
