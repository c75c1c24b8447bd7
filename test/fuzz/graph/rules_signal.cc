// Transforms, windows, draws, and steps of optimisers.
#include <cmath>

#include "fuzz/graph/rules.h"

namespace tenon::fuzz {

namespace {

bool Dft(Maker& m, const Rule& rule, Elem t) {
  const Size batch = Within(m.AnyOpenSize(), 1, 3), n = Within(m.AnyOpenSize(), 1, 17);
  const bool inverse = m.Chance(3), complex = inverse || m.Chance(2);
  const bool half = !complex && m.Chance(2), first = m.Chance(3);
  const Dims dims = {first ? n : batch, first ? batch : n, complex ? 2 : 1};
  const Value x = m.Like(t, dims, {.lo = -2, .hi = 2});
  std::vector<std::string> inputs = {x.name, ""};
  Size length = n;
  if (m.Chance(3)) length = m.Between(1, 17), inputs[1] = m.Scalar64(length.a).name;
  inputs.push_back(m.Scalar64(first ? 0 : m.Of<int64_t>({1, -2})).name);
  Value y = Computed(t, dims, 4.0 * static_cast<double>(length.most()), 0);
  y.dims[2] = 2;
  y.dims[first ? 0 : 1] =
      half ? Size::Of([](int64_t a, int64_t) { return a / 2 + 1; }, length) : length;
  y.error = 2 * x.error * static_cast<double>(length.most()) + Rounded(t, y.hi, kArithmetic);
  return m.Add(rule.op, inputs, y, {Int("inverse", inverse), Int("onesided", half)}).has_value();
}

bool Stft(Maker& m, const Rule& rule, Elem t) {
  const Size batch = Within(m.AnyOpenSize(), 1, 3);
  const int64_t width = m.Between(1, 9), step = m.Between(1, 5);
  Size length = m.AnyOpenSize();
  length = Within(length, width, 33);
  const bool complex = m.Chance(3), half = !complex && m.Chance(2), window = m.Chance(2);
  const Value x = m.Like(t, {batch, length, complex ? 2 : 1}, {.lo = -2, .hi = 2});
  std::vector<std::string> inputs = {x.name, m.Scalar64(step).name};
  if (window)
    inputs.push_back(m.Data(t, {width}, 0, 1, false).name);
  else
    inputs.insert(inputs.end(), {"", m.Scalar64(width).name});
  const double most = 4.0 * static_cast<double>(width);
  Value y = Computed(t, {batch, length, half ? width / 2 + 1 : width, 2}, most, 0);
  y.dims[1] = Size::Of([&](int64_t a, int64_t) { return (a - width) / step + 1; }, length);
  y.error = 2 * x.error * static_cast<double>(width) + Rounded(t, most, kArithmetic);
  return m.Add(rule.op, inputs, y, {Int("onesided", half)}).has_value();
}

bool WindowOfSize(Maker& m, const Rule& rule, Elem t) {
  const int64_t n = m.Between(2, 33);
  Value y = Computed(t, {n}, 1.1, InfoOf(t).unit * kArithmetic + 1e-6);
  return m
      .Add(rule.op, {m.Scalar64(n).name}, y,
           {Int("output_datatype", t), Int("periodic", m.Chance(2))})
      .has_value();
}

bool MelWeights(Maker& m, const Rule& rule, Elem t) {
  const int64_t bins = m.Between(1, 9), dft = 2 * m.Between(4, 33);
  const Value y = Computed(t, {dft / 2 + 1, bins}, 1, InfoOf(t).unit * kFormula + 1e-5);
  return m
      .Add(rule.op,
           {m.Scalar64(bins).name, m.Scalar64(dft).name, m.Scalar64(8192).name,
            m.Number(kF32, m.Of({0.0, 125.0})).name, m.Number(kF32, m.Of({4096.0, 3000.0})).name},
           y, {Int("output_datatype", t)})
      .has_value();
}

// What is drawn counts as nothing: times 0 it is 0, in the shape and of the type that were asked.
bool Draw(Maker& m, const Rule& rule, Elem t) {
  const std::string_view op = rule.op;
  const std::string drawn = m.NewName();
  std::vector<std::string> attributes;
  Value y{"", t, m.AnyDims(0, 3), 0, 0};
  if (op == "RandomNormal" || op == "RandomUniform") {
    for (Size& d : y.dims) d = d.a;
    m.Plain(rule.op, {}, drawn, {Int("dtype", t), Ints("shape", Fixed(y.dims))});
  } else if (op == "Multinomial") {
    const Size rows = Within(m.AnyOpenSize(), 1, 9);
    const int64_t n = m.Between(1, 17);
    const Value x = m.Data(t, {rows, m.Between(1, 9)}, -2, 0, false);
    y.elem = kI64, y.dims = {rows, n};
    m.Plain(rule.op, {x.name}, drawn, {Int("dtype", kI64), Int("sample_size", n)});
  } else {
    const bool coin = op == "Bernoulli";
    const Elem of = coin || m.Chance(2) ? t : m.Of<Elem>({kBool, kI8, kU16, kI32, kU64});
    const Value x = coin ? m.Data(t, y.dims, 0, 1, false) : m.Take(of);
    y.dims = x.dims;
    if (of != t) attributes.push_back(Int("dtype", t));
    m.Plain(rule.op, {x.name}, drawn, attributes);
  }
  return m.Add("Mul", {drawn, m.Number(y.elem, 0).name}, y).has_value();
}

// A step of an optimiser.
bool Step(Maker& m, const Rule& rule, Elem t) {
  const std::string_view op = rule.op;
  const Dims dims = m.AnyDims(0, 2, 100);
  const Value rate = m.Data(t, {}, 0, 1, false), count = m.Data(kI64, {}, 1, 9);
  const Value x = m.Like(t, dims, {.lo = -4, .hi = 4}), g = m.Like(t, dims, {.lo = -4, .hi = 4});
  if (x.error != 0 || g.error != 0) return false;  // quotients of small numbers stretch errors
  std::vector<std::string> inputs = {rate.name, count.name, x.name, g.name};
  inputs.push_back(m.Data(t, dims, 1, 4, false).name);
  std::vector<std::string> attributes = {Float("norm_coefficient", 0.5f)};
  std::vector<Value> results = {Computed(t, dims, 40, Rounded(t, 40, kFunction)),
                                Computed(t, dims, 60, Rounded(t, 60, kFunction))};
  if (op == "Adam") {
    inputs.push_back(m.Data(t, dims, 1, 4, false).name);
    attributes.insert(attributes.end(), {Float("alpha", 0.5f), Float("beta", 0.75f)});
    results.push_back(results.back());
  } else if (op == "Momentum") {
    attributes.insert(attributes.end(), {Float("alpha", 0.5f), Float("beta", 0.75f),
                                         Str("mode", m.Chance(2) ? "nesterov" : "standard")});
  } else {
    attributes.push_back(Float("decay_factor", 0.25f));
  }
  return m.AddAll(rule.op, inputs, results, attributes, rule.domain);
}

constexpr const char* kTraining = "ai.onnx.preview.training";

constexpr Rule kRules[] = {
    {"DFT", 20, kFloats, Dft},
    {"STFT", 17, kFloats, Stft},
    {"HannWindow", 17, kFloats, WindowOfSize},
    {"HammingWindow", 17, kFloats, WindowOfSize},
    {"BlackmanWindow", 17, kFloats, WindowOfSize},
    {"MelWeightMatrix", 17, kFloats, MelWeights},
    {"Bernoulli", 22, kFloats, Draw},
    {"Multinomial", 22, kFloats, Draw},
    {"RandomNormal", 22, kFloats, Draw},
    {"RandomNormalLike", 22, kFloats, Draw},
    {"RandomUniform", 22, kFloats, Draw},
    {"RandomUniformLike", 22, kFloats, Draw},
    {"Adagrad", 18, Only(kF32) | Only(kF64), Step, kTraining},
    {"Adam", 18, Only(kF32) | Only(kF64), Step, kTraining},
    {"Momentum", 18, Only(kF32) | Only(kF64), Step, kTraining},
};

}  // namespace

std::span<const Rule> SignalRules() { return kRules; }

}  // namespace tenon::fuzz
