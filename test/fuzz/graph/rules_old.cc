// Operators whose form older sets had otherwise: what is an input today was an attribute, and a
// softmax went over all axes from one on. Those that changed in types alone stand in their family.
// And operators that only the first sets had.
#include <cmath>

#include "fuzz/graph/rules.h"

namespace tenon::fuzz {

namespace {

bool Squeeze(Maker& m, const Rule& rule, Elem t) {
  const auto [x, y, axis] = DrawSqueezed(m, t);
  return m.Add(rule.op, {x.name}, y, {Ints("axes", {axis})}).has_value();
}

bool Unsqueeze(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.max_rank = 2});
  const int64_t axis = m.Between(0, Rank(x));
  Value y = x;
  Ints64 axes = {axis};
  y.dims.insert(y.dims.begin() + axis, 1);
  if (m.Chance(2)) {
    axes.push_back(axis + 1);
    y.dims.insert(y.dims.begin() + axis, 1);
  }
  return m.Add(rule.op, {x.name}, y, {Ints("axes", axes)}).has_value();
}

// To the end or between two places that are inside at both calls; an end may lie beyond.
bool Slice(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.min_rank = 1, .filled = true});
  const size_t axis = m.Below(x.rank());
  const int64_t d = x.dims[axis].least(), first = m.Between(0, d - 1), last = m.Between(first, d);
  const bool ends = m.Chance(2);
  Value y = x;
  y.dims[axis] = (ends ? x.dims[axis] : Size(last)) - Size(first);
  std::vector<std::string> attributes = {Ints("starts", {first}),
                                         Ints("ends", {ends ? INT64_MAX : last})};
  if (axis > 0 || m.Chance(2)) attributes.push_back(Ints("axes", {static_cast<int64_t>(axis)}));
  return m.Add(rule.op, {x.name}, y, attributes).has_value();
}

bool Split(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.min_rank = 1, .filled = true});
  const size_t axis = m.Below(x.rank());
  if (!x.dims[axis].fixed()) return false;
  const int64_t d = x.dims[axis].a, first = m.Between(0, d);
  Value a = x, b = x;
  a.name = b.name = "";
  a.dims[axis] = first, b.dims[axis] = d - first;
  std::vector<std::string> attributes = {Int("axis", static_cast<int64_t>(axis))};
  if (2 * first != d || m.Chance(2)) attributes.push_back(Ints("split", {first, d - first}));
  return m.AddAll(rule.op, {x.name}, {a, b}, attributes);
}

bool Pad(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.min_rank = 1, .filled = true});
  const std::string mode = m.Of<std::string>({"constant", "reflect", "edge"});
  Ints64 pads(2 * x.rank());
  Value y = x;
  for (size_t i = 0; i < x.rank(); ++i) {
    const int64_t most = mode == "reflect" ? std::min<int64_t>(2, x.dims[i].least() - 1) : 2;
    pads[i] = m.Between(0, most), pads[x.rank() + i] = m.Between(0, most);
    y.dims[i] = x.dims[i] + Size(pads[i] + pads[x.rank() + i]);
  }
  std::vector<std::string> attributes = {Str("mode", mode), Ints("pads", pads)};
  if (mode == "constant") {
    y.lo = std::min(y.lo, 0.0), y.hi = std::max(y.hi, 1.0);
    if (m.Chance(2)) attributes.push_back(Float("value", 1));
  }
  return m.Add(rule.op, {x.name}, y, attributes).has_value();
}

bool Clip(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t);
  const double lo = -3, hi = 5;
  const bool has_lo = !m.Chance(4), has_hi = !has_lo || !m.Chance(4);
  Value y = x;
  std::vector<std::string> attributes;
  if (has_lo) {
    y.lo = std::max(lo, x.lo), y.hi = std::max(lo, x.hi);
    attributes.push_back(Float("min", -3));
  }
  if (has_hi) {
    y.lo = std::min(hi, y.lo), y.hi = std::min(hi, y.hi);
    attributes.push_back(Float("max", 5));
  }
  return m.Add(rule.op, {x.name}, y, attributes).has_value();
}

// Over all axes from `axis` on.
bool Softmax(Maker& m, const Rule& rule, Elem t) {
  const bool log = rule.op == std::string_view("LogSoftmax");
  const bool hard = rule.op == std::string_view("Hardmax");
  const Value x = m.Take(t, {.min_rank = 2, .lo = -16, .hi = 16, .exact = hard, .filled = true});
  Value y = x;
  y.lo = log ? -48 : 0, y.hi = log ? 0 : 1;
  if (!hard) {
    y.whole = false;
    y.error = 2 * x.error + 2 * Rounded(t, y.bound(), kFunction);
  }
  const int64_t axis = m.Between(0, Rank(x) - 1);
  std::vector<std::string> attributes;
  if (axis != 1 || m.Chance(2)) attributes.push_back(Int("axis", axis));
  return m.Add(rule.op, {x.name}, y, attributes).has_value();
}

bool TopK(Maker& m, const Rule& rule, Elem t) {
  const auto [x, values, indices, axis, k] = DrawLargest(m, t);
  std::vector<std::string> inputs = {x.name}, attributes = {Int("axis", axis)};
  if (m.opset() >= 10)
    inputs.push_back(m.List({k}).name);
  else
    attributes.push_back(Int("k", k));
  return m.AddAll(rule.op, inputs, {values, indices}, attributes);
}

// Scales as an attribute before set 9, and as an input then.
bool Upsample(Maker& m, const Rule& rule, Elem t) {
  const int64_t h = m.Between(1, 3), w = m.Between(1, 3);
  const Size rows = Within(m.AnyOpenSize(), 1, 19);
  const bool nearest = !IsFloat(t) || m.Chance(2);
  const Value x = m.Like(t, {1, m.Between(1, 3), rows, m.Between(1, 9)},
                         {.lo = In(kUnsigned | Only(kBool), t) ? 0.0 : -100.0, .hi = 100});
  Value y = x;
  y.dims[2] = y.dims[2] * Size(h), y.dims[3] = y.dims[3] * Size(w);
  if (!nearest) y.whole = false, y.error += Rounded(t, y.bound(), kFunction);
  const std::vector<float> scales = {1, 1, static_cast<float>(h), static_cast<float>(w)};
  std::vector<std::string> inputs = {x.name},
                           attributes = {Str("mode", nearest ? "nearest" : "linear")};
  if (rule.op == std::string_view("Resize") || m.opset() >= 9)
    inputs.push_back(m.Floats(scales));
  else
    attributes.push_back(FloatList("scales", scales));
  return m.Add(rule.op, inputs, y, attributes).has_value();
}

// ---- What sets before 10 had on trial, and converters still write

bool Scaled(Maker& m, const Rule& rule, Elem t) {
  const std::string_view op = rule.op;
  const double most = op == "Affine" ? 100 : 30;
  const Value x = m.Take(t, {.lo = -most, .hi = most});
  std::vector<std::string> attributes;
  float alpha = 1, beta = op == "Affine" ? 0 : 1;
  if (!m.Chance(4)) attributes.push_back(Float("alpha", alpha = m.Of({0.5f, -2.0f})));
  if (!m.Chance(4)) attributes.push_back(Float("beta", beta = m.Of({-0.5f, 3.0f})));
  const double slope = std::abs(alpha * (op == "Affine" ? 1 : beta)),
               reach = (std::abs(alpha) + slope) * std::max(1.0, x.bound()) + std::abs(beta);
  const Value y = Computed(t, x.dims, reach, slope * x.error + Rounded(t, reach, 2 * kFunction));
  return m.Add(rule.op, {x.name}, y, attributes).has_value();
}

Value Picture(Maker& m, Elem t, int64_t least) {
  return m.Like(t,
                {Within(m.AnyOpenSize(), 1, 3), m.Between(1, 5), Within(m.AnyOpenSize(), least, 9),
                 Within(m.AnyOpenSize(), least, 9)},
                {.lo = -100, .hi = 100});
}

bool ImageScaler(Maker& m, const Rule& rule, Elem t) {
  const Value x = Picture(m, t, 0);
  std::vector<std::string> attributes;
  if (m.Chance(2)) attributes.push_back(Float("scale", 0.5f));
  if (m.Chance(2)) {
    std::vector<float> bias;
    for (int64_t i = 0; i < x.dims[1].a; ++i) bias.push_back(static_cast<float>(m.Between(-3, 3)));
    attributes.push_back(FloatList("bias", bias));
  }
  const double most = x.bound() + 3;
  const Value y = Computed(t, x.dims, most, x.error + Rounded(t, most, kFormula));
  return m.Add(rule.op, {x.name}, y, attributes).has_value();
}

// Of four borders what is between them, or from two of them on so many rows and columns.
bool Crop(Maker& m, const Rule& rule, Elem t) {
  const Value x = Picture(m, t, 5);
  Ints64 border;
  for (int i = 0; i < 4; ++i) border.push_back(m.Between(0, 2));
  std::vector<std::string> attributes = {Ints("border", border)};
  Value y = x;
  y.dims[2] = x.dims[2] - Size(border[1] + border[3]);
  y.dims[3] = x.dims[3] - Size(border[0] + border[2]);
  if (m.Chance(2)) {
    y.dims[2] = m.Between(0, x.dims[2].least() - border[1]);
    y.dims[3] = m.Between(0, x.dims[3].least() - border[0]);
    attributes.push_back(Ints("scale", {y.dims[2].a, y.dims[3].a}));
  }
  return m.Add(rule.op, {x.name}, y, attributes).has_value();
}

constexpr Rule kRules[] = {
    {"Squeeze", 1, kOldAll, Squeeze, "", 13},
    {"Unsqueeze", 1, kOldAll, Unsqueeze, "", 13},
    {"Slice", 1, kOldAll, Slice, "", 10},
    {"Split", 2, kOldAll, Split, "", 13},
    {"Pad", 2, kIeee, Pad, "", 11},
    {"Clip", 6, kIeee, Clip, "", 11},
    {"Softmax", 1, kIeee, Softmax, "", 13},
    {"LogSoftmax", 1, kIeee, Softmax, "", 13},
    {"Hardmax", 1, kIeee, Softmax, "", 13},
    {"TopK", 1, kIeee, TopK, "", 11},
    {"Upsample", 7, kOldAll, Upsample, "", 10},
    {"Resize", 10, kOldAll, Upsample, "", 11},
    {"Affine", 1, kIeee, Scaled},
    {"ScaledTanh", 1, kIeee, Scaled},
    {"ParametricSoftplus", 1, kIeee, Scaled},
    {"ImageScaler", 1, kIeee, ImageScaler},
    {"Crop", 1, kIeee, Crop},
};

}  // namespace

std::span<const Rule> OldRules() { return kRules; }

}  // namespace tenon::fuzz
