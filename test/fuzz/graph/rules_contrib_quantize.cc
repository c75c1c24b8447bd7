// Operators of com.microsoft on integers of 8 and 16 bits, and the convolution of the default
// domain. Scales are powers of two: quotients are exact, so rounding is the same everywhere.
#include <cmath>

#include "fuzz/graph/windows.h"

namespace tenon::fuzz {

namespace {

constexpr const char* kContrib = "com.microsoft";

std::string Scale(Maker& m, double v) { return m.Number(kF32, v).name; }

// Any number of the type; of functions that are rounded at the end, one step off.
Value Bytes(Elem t, Dims dims, double steps = 0) {
  const ElemInfo& info = InfoOf(t);
  return {"",        t,     std::move(dims), In(kSigned, t) ? -info.most - 1 : 0,
          info.most, steps, steps == 0};
}

// Results that may be a step off go on as floats.
bool AddLoose(Maker& m, const Rule& rule, const std::vector<std::string>& inputs, Elem t,
              const Dims& dims, const std::vector<std::string>& attributes) {
  const std::string out = m.NewName();
  m.PlainAll(rule.op, inputs, {out}, attributes, rule.domain);
  Value y = Bytes(t, dims, 0.3);  // times the slack of comparisons: one step
  y.elem = kF32;
  return m.Add("Cast", {out}, y, {Int("to", kF32)}).has_value();
}

bool Binary(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t), y = m.Against(x, t);
  const std::string zero = m.Number(t, 3).name;
  return m
      .Add(rule.op,
           {x.name, Scale(m, 0.25), zero, y.name, Scale(m, 0.5), m.Number(t, 7).name,
            Scale(m, rule.op == std::string_view("QLinearMul") ? 8 : 1), zero},
           Bytes(t, *Broadcast(x.dims, y.dims)), {}, kContrib)
      .has_value();
}

bool Function(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t);
  const bool leaky = rule.op == std::string_view("QLinearLeakyRelu");
  std::vector<std::string> attributes;
  if (leaky) attributes.push_back(Float("alpha", 0.25f));
  return AddLoose(m, rule,
                  {x.name, Scale(m, 1.0 / 16), m.Number(t, 3).name,
                   Scale(m, leaky ? 1.0 / 8 : 1.0 / 256), m.Number(t, 1).name},
                  t, x.dims, attributes);
}

// Along one axis, or, of sets before 13, along all from one on.
bool Softmax(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.min_rank = 1});
  std::vector<std::string> attributes = {Int("opset", m.Of<int64_t>({12, 13}))};
  if (m.Chance(2)) attributes.push_back(Int("axis", m.Between(-Rank(x), Rank(x) - 1)));
  return AddLoose(m, rule,
                  {x.name, Scale(m, 1.0 / 16), m.Chance(2) ? m.Number(t, 3).name : "",
                   Scale(m, 1.0 / 256), m.Number(t, In(kSigned, t) ? -128 : 0).name},
                  t, x.dims, attributes);
}

// Rows of tables of bytes: as numbers they are within -4 … 4, and the factors within 1 … 3.
bool EmbedNorm(Maker& m, const Rule& rule, Elem t) {
  const Size batch = Within(m.AnyOpenSize(), 1, 3), length = Within(m.AnyOpenSize(), 1, 9);
  const int64_t width = m.Between(1, 33);
  const double least = In(kSigned, t) ? -128 : 0;
  const bool segments = m.Chance(2);
  const auto ids = [&](int64_t most) {
    return m.Data(kI32, {batch, length}, 0, static_cast<double>(most)).name;
  };
  const auto table = [&](int64_t rows) {
    return m.Data(t, {rows, width}, least, least + 255).name;
  };
  std::vector<std::string> inputs = {ids(10), segments ? ids(2) : "", table(11), table(9),
                                     segments ? table(3) : ""};
  inputs.push_back(m.Data(t, {width}, least + 64, least + 192).name);
  inputs.push_back(m.Data(t, {width}, least, least + 255).name);
  inputs.push_back(m.Chance(2) ? m.Data(kI32, {batch, length}, 0, 1).name : "");
  for (const double scale : {1.0 / 32, 1.0 / 32, 1.0 / 32, 1.0 / 64, 1.0 / 64})
    inputs.push_back(inputs.size() == 10 && !segments ? "" : Scale(m, scale));
  for (const double zero : {128, 128, 128, 0, 128})
    inputs.push_back(inputs.size() == 15 && !segments ? "" : m.Number(t, least + zero).name);
  const std::vector<Value> results = {
      Computed(kF32, {batch, length, width}, 40, Rounded(kF32, 40, 4 * kFunction)),
      {"", kI32, {batch}, 0, 9}};
  return m.AddAll(rule.op, inputs, results, {Float("epsilon", 0.5f)}, kContrib);
}

bool Concat(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.min_rank = 1});
  const size_t axis = m.Below(x.rank());
  Dims dims = x.dims;
  dims[axis] = m.AnyOpenSize();
  const Value y = m.Like(t, dims);
  dims[axis] = dims[axis] + x.dims[axis];
  const std::string zero = m.Number(t, 3).name, other = m.Number(t, 5).name;
  return m
      .Add(rule.op, {Scale(m, 0.5), other, x.name, Scale(m, 0.5), zero, y.name, Scale(m, 1), zero},
           Bytes(t, dims), {Int("axis", static_cast<int64_t>(axis))}, kContrib)
      .has_value();
}

bool AveragePool(Maker& m, const Rule& rule, Elem t) {
  const bool global = rule.op == std::string_view("QLinearGlobalAveragePool");
  const Value x = Image(m, t, -1e9, 1e9);
  const std::vector<std::string> inputs = {x.name, Scale(m, 0.5), m.Number(t, 3).name, Scale(m, 1),
                                           m.Number(t, 5).name};
  Dims dims = x.dims;
  if (global) {
    for (size_t i = 2; i < dims.size(); ++i) dims[i] = 1;
    return AddLoose(m, rule, inputs, t, dims, {});
  }
  const std::optional<Window> window = AnyWindow(m, x, false);
  if (!window) return false;
  const size_t n = window->kernel.size();
  for (size_t i = 0; i < n; ++i) {
    if (window->pads[i] + window->pads[i + n] >= window->kernel[i]) return false;
  }
  return AddLoose(m, rule, inputs, t, window->dims,
                  {Ints("kernel_shape", window->kernel), Ints("strides", window->strides),
                   Ints("pads", window->pads), Int("count_include_pad", m.Chance(2))});
}

bool Quantize(Maker& m, const Rule& rule, Elem t) {
  if (rule.op == std::string_view("QuantizeLinear")) {
    const Value x = m.Take(kF32, {.exact = true});
    return m
        .Add(rule.op, {x.name, Scale(m, m.Of({0.5, 2.0})), m.Number(t, m.Between(0, 9)).name},
             Bytes(t, x.dims), {}, kContrib)
        .has_value();
  }
  const Value x = m.Take(t);
  Value y = x;
  y.elem = kF32, y.lo = 2 * (x.lo - 3), y.hi = 2 * x.hi;
  return m.Add(rule.op, {x.name, Scale(m, 2), m.Number(t, 3).name}, y, {}, kContrib).has_value();
}

bool Gemm(Maker& m, const Rule& rule, Elem t) {
  const Size rows = m.AnyOpenSize();
  const int64_t k = m.Between(1, 33), n = m.Between(1, 17);
  const bool ta = m.Chance(2), tb = m.Chance(2);
  const Elem w = t == kU8 && m.Chance(2) ? kI8 : t;
  const Value a = m.Like(t, ta ? Dims{k, rows} : Dims{rows, k});
  const Value b = m.Data(w, tb ? Dims{n, k} : Dims{k, n}, w == kU8 ? 0 : -127, 127);
  return m
      .Add(rule.op,
           {a.name, Scale(m, 0.5), m.Number(t, 3).name, b.name, Scale(m, 1), m.Number(w, 1).name,
            m.Data(kI32, {n}, -99, 99).name, Scale(m, 16), m.Number(t, 4).name},
           Bytes(t, {rows, n}), {Int("transA", ta), Int("transB", tb)}, kContrib)
      .has_value();
}

bool ToFloat(Maker& m, const Rule& rule, Elem t) {
  const bool dynamic = rule.op == std::string_view("DynamicQuantizeMatMul");
  const Size rows = Within(m.AnyOpenSize(), 1, 17);
  const int64_t k = m.Between(1, 17), n = m.Between(1, 17);
  const Value b = m.Data(t, {k, n}, t == kU8 ? 0 : -127, 127);
  const std::string scale = Scale(m, 1.0 / 64), zero = m.Number(t, 1).name,
                    bias = m.Chance(2) ? m.Data(kF32, {n}, -9, 9).name : "";
  const double each = 4.0 * static_cast<double>(k);
  if (dynamic) {
    const Value a = m.Like(kF32, {rows, k}, {.lo = -4, .hi = 4, .exact = true});
    // The data has 255 steps.
    Value y = Computed(kF32, {rows, n}, 4 * each + 9, 0);
    y.error = 8.0 / 255 * 2 * 4 * static_cast<double>(k);
    return m.Add(rule.op, {a.name, b.name, scale, zero, bias}, y, {}, kContrib).has_value();
  }
  const Elem other = t == kU8 ? kU8 : m.Of<Elem>({kI8, kU8});
  const Value a = m.Like(other, {rows, k});
  Value y = Computed(kF32, {rows, n}, 256 * each + 9, 0);
  y.error = Rounded(kF32, y.hi, kArithmetic);
  return m
      .Add(rule.op, {a.name, b.name, Scale(m, 0.5), scale, m.Number(other, 3).name, zero, bias}, y,
           {}, kContrib)
      .has_value();
}

bool Conv(Maker& m, const Rule& rule, Elem t) {
  const Value x = Image(m, t, -1e9, 1e9);
  const std::optional<Window> window = AnyWindow(m, x, true);
  if (!window) return false;
  const int64_t c = x.dims[1].a, maps = m.Between(1, 9);
  Dims dims = {maps, c};
  dims.insert(dims.end(), window->kernel.begin(), window->kernel.end());
  const Elem other = t == kI8 ? kI8 : m.Of<Elem>({kI8, kU8});
  const Value w = m.Data(other, dims, other == kU8 ? 0 : -127, 127);
  Dims out = window->dims;
  out[1] = maps;
  std::vector<std::string> inputs = {x.name,       Scale(m, 0.5),      m.Number(t, 3).name,
                                     w.name,       Scale(m, 1),        m.Number(other, 0).name,
                                     Scale(m, 32), m.Number(t, 4).name};
  if (m.Chance(2)) inputs.push_back(m.Data(kI32, {maps}, -99, 99).name);
  return m
      .Add(rule.op, inputs, Bytes(t, out),
           {Ints("kernel_shape", window->kernel), Ints("strides", window->strides),
            Ints("dilations", window->dilations), Ints("pads", window->pads)})
      .has_value();
}

constexpr Types kNarrow = kBytes | Only(kI16) | Only(kU16);

constexpr Rule kRules[] = {
    {"QLinearAdd", 18, kBytes, Binary, kContrib},
    {"QLinearMul", 18, kBytes, Binary, kContrib},
    {"QLinearSigmoid", 18, kBytes, Function, kContrib},
    {"QLinearLeakyRelu", 18, kBytes, Function, kContrib},
    {"QLinearConcat", 18, kBytes, Concat, kContrib},
    {"QLinearAveragePool", 18, kBytes, AveragePool, kContrib},
    {"QLinearGlobalAveragePool", 18, kBytes, AveragePool, kContrib},
    {"QLinearSoftmax", 18, kBytes, Softmax, kContrib},
    {"QEmbedLayerNormalization", 18, kBytes, EmbedNorm, kContrib},
    {"QuantizeLinear", 18, kNarrow, Quantize, kContrib},
    {"DequantizeLinear", 18, kNarrow, Quantize, kContrib},
    {"QGemm", 18, kBytes, Gemm, kContrib},
    {"MatMulIntegerToFloat", 18, kBytes, ToFloat, kContrib},
    {"DynamicQuantizeMatMul", 18, kBytes, ToFloat, kContrib},
    {"QLinearConv", 10, kBytes, Conv},
};

}  // namespace

std::span<const Rule> ContribQuantizeRules() { return kRules; }

}  // namespace tenon::fuzz
