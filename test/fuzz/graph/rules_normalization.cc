// Norms, resizing, and other formulas over whole tensors.
#include <cmath>

#include "fuzz/graph/rules.h"

namespace tenon::fuzz {

namespace {

// A result of about `most` that was summed and divided.
Value Normalized(const Value& x, double most) {
  Value y = x;
  y.lo = -most, y.hi = most, y.whole = false;
  // Epsilon is 0.5 or more in all norms here, so that a deviation of 0 stretches no error.
  y.error = 8 * x.error + InfoOf(x.elem).unit * 4 * kFunction * most;
  return y;
}

// Its elements are small, so that squares of them are exact enough in every type.
Value Modest(Maker& m, Elem t, size_t least_rank, bool fixed_channels) {
  const Need need{.min_rank = least_rank, .lo = -8, .hi = 8, .filled = true};
  for (int tries = 0; tries < 3; ++tries) {
    const Value x = m.Take(t, need);
    if (!fixed_channels || x.dims[1].fixed()) return x;
  }
  return m.Data(t, {m.Between(1, 2), m.Between(1, 8), m.Between(1, 9), m.Between(1, 9)}, -4, 4);
}

bool BatchNorm(Maker& m, const Rule& rule, Elem t) {
  const Value x = Modest(m, t, 2, true);
  const int64_t c = x.dims[1].a;
  const Value scale = m.Data(t, {c}, 1, 3), bias = m.Data(t, {c}, -2, 2);
  const Value mean = m.Data(t, {c}, -2, 2), var = m.Data(t, {c}, 1, 4);
  return m.Add(rule.op, {x.name, scale.name, bias.name, mean.name, var.name}, Normalized(x, 40))
      .has_value();
}

bool LayerNorm(Maker& m, const Rule& rule, Elem t) {
  const Value x = Modest(m, t, 1, false);
  const auto axis = static_cast<int64_t>(m.Below(x.rank()));
  const Dims dims(x.dims.begin() + axis, x.dims.end());
  std::vector<std::string> inputs = {x.name, m.Data(t, dims, 1, 3).name};
  if (rule.op == std::string_view("LayerNormalization") && m.Chance(2))
    inputs.push_back(m.Data(t, dims, -2, 2).name);
  return m.Add(rule.op, inputs, Normalized(x, 40), {Int("axis", axis), Float("epsilon", 0.5f)})
      .has_value();
}

bool InstanceNorm(Maker& m, const Rule& rule, Elem t) {
  const Value x = Modest(m, t, 3, true);
  const int64_t c = x.dims[1].a;
  int64_t groups = m.Between(1, c);
  while (c % groups != 0) --groups;
  std::vector<std::string> attributes = {Float("epsilon", 0.5f)};
  if (rule.op == std::string_view("GroupNormalization"))
    attributes.push_back(Int("num_groups", groups));
  return m
      .Add(rule.op, {x.name, m.Data(t, {c}, 1, 3).name, m.Data(t, {c}, -2, 2).name},
           Normalized(x, 60), attributes)
      .has_value();
}

bool LpNorm(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.min_rank = 1, .lo = 1, .hi = 8, .filled = true});
  return m
      .Add(rule.op, {x.name}, Normalized(x, 1),
           {Int("axis", static_cast<int64_t>(m.Below(x.rank()))), Int("p", m.Between(1, 2))})
      .has_value();
}

bool Lrn(Maker& m, const Rule& rule, Elem t) {
  const Value x = Modest(m, t, 3, true);
  return m.Add(rule.op, {x.name}, Normalized(x, 8), {Int("size", 3)}).has_value();
}

bool MeanVariance(Maker& m, const Rule& rule, Elem t) {
  // Without an epsilon of its own: elements that are all the same would be 0 / 0.
  const Value x = m.Data(t, {m.Between(2, 3), m.Between(1, 4), m.Between(2, 5), 3}, -4, 4, false);
  Value y = Normalized(x, 8);
  y.error = Rounded(t, 8, 2 * kFunction);
  return m.Add(rule.op, {x.name}, y).has_value();
}

bool Resize(Maker& m, const Rule& rule, Elem t) {
  const Dims dims = {1, m.Between(1, 3), m.AnyOpenSize(), m.Between(1, 9)};
  if (dims[2].least() == 0) return false;
  const bool nearest = !IsFloat(t) || m.Chance(2);
  const Value x = m.Like(t, dims, {.lo = In(kUnsigned, t) ? 0.0 : -100.0, .hi = 100});
  const double s = m.Of({2.0, 0.5, 3.0});
  Value y = x;
  for (size_t i = 2; i < 4; ++i)
    y.dims[i] = Size::Of(
        [&](int64_t a, int64_t) {
          return static_cast<int64_t>(std::floor(static_cast<double>(a) * s));
        },
        dims[i]);
  if (Count(y.dims).least() == 0) return false;
  if (!nearest) y.whole = false, y.error += InfoOf(t).unit * kFunction * std::max(1.0, y.bound());
  const std::string scales = m.Floats({1, 1, static_cast<float>(s), static_cast<float>(s)});
  const std::string where =
      nearest ? "asymmetric"
              : m.Of<std::string>({"half_pixel", "asymmetric", "pytorch_half_pixel"});
  return m
      .Add(rule.op, {x.name, "", scales}, y,
           {Str("mode", nearest ? "nearest" : "linear"),
            Str("coordinate_transformation_mode", where), Str("nearest_mode", "floor")})
      .has_value();
}

bool Det(Maker& m, const Rule& rule, Elem t) {
  const int64_t n = m.Between(1, 3);
  Dims dims = m.AnyDims(0, 1, 30);
  Dims x_dims = dims;
  x_dims.push_back(n), x_dims.push_back(n);
  const Value x = m.Data(t, x_dims, -2, 2);
  Value y{"", t, dims, -48, 48, 0, false};
  // Of a matrix that is all but singular, division stretches what elimination leaves.
  y.error = InfoOf(t).unit * 64;
  return m.Add(rule.op, {x.name}, y).has_value();
}

bool NllLoss(Maker& m, const Rule& rule, Elem t) {
  const bool cross = rule.op == std::string_view("SoftmaxCrossEntropyLoss");
  const int64_t classes = m.Between(1, 9);
  const Size n = m.AnyOpenSize();
  if (n.least() == 0) return false;
  const Value x = m.Like(t, {n, classes}, {.lo = -4, .hi = 4});
  const Value labels = m.Data(kI64, {n}, 0, static_cast<double>(classes - 1));
  const std::string kind = m.Of<std::string>({"none", "mean", "sum"});
  Value y = Normalized(x, 16);
  y.dims = kind == "none" ? Dims{n} : Dims{};
  if (kind == "sum") {
    y.lo *= static_cast<double>(n.most()), y.hi *= static_cast<double>(n.most());
    y.error *= static_cast<double>(n.most());
  }
  (void)cross;
  return m.Add(rule.op, {x.name, labels.name}, y, {Str("reduction", kind)}).has_value();
}

constexpr Rule kRules[] = {
    {"BatchNormalization", 15, kFloats, BatchNorm},
    {"LayerNormalization", 17, kFloats, LayerNorm},
    {"RMSNormalization", 23, kFloats, LayerNorm},
    {"InstanceNormalization", 22, kFloats, InstanceNorm},
    {"GroupNormalization", 21, kFloats, InstanceNorm},
    {"LpNormalization", 22, kFloats, LpNorm},
    {"MeanVarianceNormalization", 13, kFloats, MeanVariance},
    {"LRN", 13, kFloats, Lrn},
    {"Resize", 19, kNumbers, Resize},
    {"Det", 22, kFloats, Det},
    {"NegativeLogLikelihoodLoss", 22, kFloats, NllLoss},
    {"SoftmaxCrossEntropyLoss", 13, kFloats, NllLoss},
    // As sets before defined them, of the types that they knew.
    {"BatchNormalization", 9, kIeee, BatchNorm, "", 14},
    {"InstanceNormalization", 6, kIeee, InstanceNorm, "", 22},
    {"LpNormalization", 1, kIeee, LpNorm, "", 22},
    {"LRN", 1, kIeee, Lrn, "", 13},
    {"MeanVarianceNormalization", 9, kIeee, MeanVariance, "", 13},
    {"Resize", 11, kIeee | kInts, Resize, "", 13},
    {"Det", 11, kIeee, Det, "", 22},
};

}  // namespace

std::span<const Rule> NormalizationRules() { return kRules; }

}  // namespace tenon::fuzz
