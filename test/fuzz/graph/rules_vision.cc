// Operators of detectors and of images. Places are whole numbers where they choose between pixels.
#include <cmath>

#include "fuzz/graph/windows.h"

namespace tenon::fuzz {

namespace {

// An image of four axes with fixed channels.
Value Picture(Maker& m, Elem t, Size height, Size width) {
  return m.Like(t, {Within(m.AnyOpenSize(), 1, 3), m.Between(1, 5), height, width},
                {.lo = In(kUnsigned, t) ? 0.0 : -4.0, .hi = 4});
}
Size Side(Maker& m) { return Within(m.AnyOpenSize(), 1, 9); }

// Boxes in an image, one in some networks of no area.
std::vector<double> Boxes(Maker& m, int64_t n, int64_t images, bool with_image) {
  std::vector<double> out;
  for (int64_t i = 0; i < n; ++i) {
    if (with_image) out.push_back(static_cast<double>(m.Between(0, images - 1)));
    const int64_t x = m.Between(0, 5), y = m.Between(0, 5);
    for (int64_t v : {x, y, x + m.Between(1, 6), y + m.Between(1, 6)})
      out.push_back(static_cast<double>(v));
  }
  return out;
}

bool RoiAlign(Maker& m, const Rule& rule, Elem t) {
  const Value x = Picture(m, t, Side(m), Side(m));
  const int64_t n = m.Between(0, 5), side = m.Of<int64_t>({1, 2, 4});
  const Value rois = m.Tensor(t, {n, 4}, Boxes(m, n, 1, false));
  const Value image = m.Data(kI64, {n}, 0, static_cast<double>(x.dims[0].least() - 1));
  Value y = Computed(t, {n, x.dims[1], side, m.Between(1, 2) * side}, x.bound() * 1.01, 0);
  const int64_t wide = y.dims[3].a;
  y.error = x.error + Rounded(t, y.hi, kFormula);
  return m
      .Add(
          rule.op, {x.name, rois.name, image.name}, y,
          {Int("output_height", side), Int("output_width", wide), Int("sampling_ratio", 2),
           Str("mode", m.Chance(2) ? "avg" : "max"),
           Str("coordinate_transformation_mode", m.Chance(2) ? "half_pixel" : "output_half_pixel")})
      .has_value();
}

bool MaxRoiPool(Maker& m, const Rule& rule, Elem t) {
  const Value x = Picture(m, t, Side(m), Side(m));
  const int64_t n = m.Between(0, 4), side = m.Of<int64_t>({1, 2, 4});
  const Value rois = m.Tensor(t, {n, 5}, Boxes(m, n, x.dims[0].least(), true));
  Value y = x;
  y.dims = {n, x.dims[1], side, side};
  y.lo = std::min(0.0, y.lo), y.hi = std::max(0.0, y.hi);
  return m.Add(rule.op, {x.name, rois.name}, y, {Ints("pooled_shape", {side, side})}).has_value();
}

// As many boxes as stay: their sum over them has a size that is known.
bool Suppress(Maker& m, const Rule& rule, Elem t) {
  const int64_t batch = m.Between(1, 2), classes = m.Between(1, 3);
  const Size n = Within(m.AnyOpenSize(), 1, 33);
  const Value boxes = m.Data(t, {batch, n, 4}, 0, 9);
  const Value scores = m.Data(t, {batch, classes, n}, 0, 1, false);
  std::vector<std::string> inputs = {boxes.name, scores.name, m.List({m.Between(0, 9)}).name};
  inputs.push_back(m.Floats({m.Of({0.4f, 0.7f})}));
  if (m.Chance(2)) inputs.push_back(m.Floats({0.3f}));
  const std::string found = m.NewName();
  m.Plain(rule.op, inputs, found, {Int("center_point_box", m.Chance(3))});
  const Value y{"", kI64, {3}, 0, 1e4};
  return Summed(m, found, 0, y);
}

bool GridSample(Maker& m, const Rule& rule, Elem t) {
  const Value x = Picture(m, t, Side(m), Side(m));
  const bool moves = !IsFloat(t);  // between pixels there are no integers
  const bool whole = moves || t == kF16 || t == kBF16 || m.Chance(2);
  const std::string mode = moves   ? "nearest"
                           : whole ? m.Of<std::string>({"linear", "nearest", "cubic"})
                                   : "linear";
  const Value grid = m.Data(moves ? kF32 : t, {x.dims[0], Side(m), Side(m), 2}, -1, 1, whole);
  Value y = Computed(t, {x.dims[0], x.dims[1], grid.dims[1], grid.dims[2]}, x.bound() * 2, 0);
  y.error = 2 * x.error + Rounded(t, y.hi, kFormula) + (whole ? 0 : InfoOf(t).unit * 9 * y.hi);
  if (moves) {
    y = x, y.dims[2] = grid.dims[1], y.dims[3] = grid.dims[2];
    y.lo = std::min(0.0, x.lo), y.hi = std::max(0.0, x.hi);
  }
  return m
      .Add(rule.op, {x.name, grid.name}, y,
           {Str("mode", mode), Int("align_corners", m.Chance(2)),
            Str("padding_mode", m.Of<std::string>({"zeros", "border", "reflection"}))})
      .has_value();
}

bool AffineGrid(Maker& m, const Rule& rule, Elem t) {
  const int64_t n = m.Between(1, 3), h = m.Between(1, 9), w = m.Between(1, 9), d = m.Between(1, 3);
  const bool deep = m.Chance(3);
  const Value theta = m.Data(t, {n, deep ? 3 : 2, deep ? 4 : 3}, -2, 2);
  const Value y =
      Computed(t, deep ? Dims{n, d, h, w, 3} : Dims{n, h, w, 2}, 8, Rounded(t, 8, kArithmetic));
  return m
      .Add(rule.op, {theta.name, m.List(deep ? Ints64{n, 2, d, h, w} : Ints64{n, 2, h, w}).name}, y,
           {Int("align_corners", m.Chance(2))})
      .has_value();
}

// The columns of a picture of known sides, back into it.
bool ColumnsToImage(Maker& m, const Rule& rule, Elem t) {
  const int64_t h = m.Between(1, 9), w = m.Between(1, 9), c = m.Between(1, 3);
  Value image{"", t, {1, c, h, w}};
  const std::optional<Window> window = AnyWindow(m, image, true);
  if (!window) return false;
  const auto taps = static_cast<int64_t>(window->taps);
  const int64_t places = window->dims[2].a * window->dims[3].a;
  const Size batch = Within(m.AnyOpenSize(), 1, 3);
  const Value x =
      m.Like(t, {batch, c * taps, places}, {.lo = In(kUnsigned, t) ? 0.0 : -4.0, .hi = 4});
  Value y = x;
  y.dims = {batch, c, h, w};
  y.lo = std::min(0.0, x.lo * window->taps), y.hi = std::max(0.0, x.hi * window->taps);
  y.error = x.error * window->taps;
  if (IsFloat(t) && !y.whole) y.error += Rounded(t, y.bound(), kArithmetic);
  return m
      .Add(rule.op, {x.name, m.List({h, w}).name, m.List(window->kernel).name}, y,
           {Ints("strides", window->strides), Ints("dilations", window->dilations),
            Ints("pads", window->pads)})
      .has_value();
}

bool DeformConv(Maker& m, const Rule& rule, Elem t) {
  const Value x = Picture(m, t, Side(m), Side(m));
  const std::optional<Window> window = AnyWindow(m, x, true);
  if (!window) return false;
  const int64_t c = x.dims[1].a, maps = m.Between(1, 5);
  const auto taps = static_cast<int64_t>(window->taps);
  const Value w = m.Data(t, {maps, c, window->kernel[0], window->kernel[1]}, -2, 2);
  const Dims at = {x.dims[0], 2 * taps, window->dims[2], window->dims[3]};
  std::vector<std::string> inputs = {x.name, w.name, m.Data(t, at, -2, 2).name};
  Value y = SumOfProducts(x, w, window->taps * static_cast<double>(c), t);
  y.dims = window->dims, y.dims[1] = maps;
  inputs.push_back(m.Chance(2) ? m.Data(t, {maps}, -3, 3).name : "");
  y.lo -= 3, y.hi += 3;
  if (m.Chance(2)) {
    inputs.push_back(m.Data(t, {x.dims[0], taps, at[2], at[3]}, 0, 1, false).name);
    y.whole = false, y.error += Rounded(t, y.hi, kArithmetic);
  }
  return m
      .Add(rule.op, inputs, y,
           {Ints("kernel_shape", window->kernel), Ints("strides", window->strides),
            Ints("dilations", window->dilations), Ints("pads", window->pads)})
      .has_value();
}

// Back to where the largest of each window was.
bool Unpool(Maker& m, const Rule& rule, Elem t) {
  const int64_t h = 2 * m.Between(1, 8), w = 2 * m.Between(1, 8);
  const Dims dims = {Within(m.AnyOpenSize(), 1, 3), m.Between(1, 3), h, w};
  const Value x = m.Like(t, dims, {.lo = -100, .hi = 100, .exact = true});
  const std::string most = m.NewName(), at = m.NewName();
  const std::vector<std::string> window = {Ints("kernel_shape", {2, 2}), Ints("strides", {2, 2})};
  m.PlainAll("MaxPool", {x.name}, {most, at}, window);
  Value y = x;
  y.lo = std::min(0.0, y.lo), y.hi = std::max(0.0, y.hi);
  return m.Add(rule.op, {most, at}, y, window).has_value();
}

bool LastChannelPool(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Like(t, {Side(m), Side(m), Side(m), m.Between(1, 17)});
  Value first = x;
  first.dims = {x.dims[0], x.dims[3], x.dims[1], x.dims[2]};
  const std::optional<Window> window = AnyWindow(m, first, false);
  if (!window) return false;
  for (size_t i = 0; i < 2; ++i) {  // a window in the padding alone has no largest
    if (window->pads[i] >= window->kernel[i] || window->pads[i + 2] >= window->kernel[i])
      return false;
  }
  Value y = x;
  y.dims = {x.dims[0], window->dims[2], window->dims[3], x.dims[3]};
  return m
      .Add(rule.op, {x.name}, y,
           {Ints("kernel_shape", window->kernel), Ints("strides", window->strides),
            Ints("pads", window->pads)},
           rule.domain)
      .has_value();
}

constexpr Rule kRules[] = {
    {"RoiAlign", 22, kFloats, RoiAlign},
    {"MaxRoiPool", 22, kFloats, MaxRoiPool},
    {"NonMaxSuppression", 11, Only(kF32), Suppress},
    {"GridSample", 22, kAll, GridSample},
    {"AffineGrid", 20, kFloats, AffineGrid},
    {"Col2Im", 18, kNumbers, ColumnsToImage},
    {"DeformConv", 22, kFloats, DeformConv},
    {"MaxUnpool", 22, kFloats, Unpool},
    {"NhwcMaxPool", 14, kBytes, LastChannelPool, "com.microsoft"},
};

}  // namespace

std::span<const Rule> VisionRules() { return kRules; }

}  // namespace tenon::fuzz
