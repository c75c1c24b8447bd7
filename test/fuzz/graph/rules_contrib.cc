// Operators of com.microsoft that compute in floats, and experts.
#include <cmath>
#include <numeric>

#include "fuzz/graph/windows.h"

namespace tenon::fuzz {

namespace {

constexpr const char* kContrib = "com.microsoft";
constexpr Types kMost = Only(kF32) | Only(kF16);

bool Activation(Maker& m, const Rule& rule, Elem t) {
  const std::string_view op = rule.op;
  const Value x = m.Take(t, {.min_rank = 1, .lo = -8, .hi = 8});
  std::vector<std::string> inputs = {x.name};
  if (op == "BiasGelu" || (op == "FastGelu" && m.Chance(2)))
    inputs.push_back(m.Data(t, {x.dims.back()}, -2, 2).name);
  const Value y = Computed(t, x.dims, 11, 1.2 * x.error + Rounded(t, 11, kFormula));
  return m.Add(rule.op, inputs, y, {}, kContrib).has_value();
}

bool FusedMatMul(Maker& m, const Rule& rule, Elem t) {
  const Size rows = m.AnyOpenSize(), k = m.AnyOpenSize(), n = m.AnyOpenSize();
  const bool ta = m.Chance(2), tb = m.Chance(2);
  Dims a = ta ? Dims{k, rows} : Dims{rows, k}, b = tb ? Dims{n, k} : Dims{k, n};
  Dims z_dims = {rows, n};
  if (m.Chance(2)) {
    const Size batch = Within(m.AnyOpenSize(), 1, 3);
    a.insert(a.begin(), batch), z_dims.insert(z_dims.begin(), batch);
    if (m.Chance(2)) b.insert(b.begin(), batch);
  }
  const Value x = m.Like(t, a, {.lo = -4, .hi = 4}), y = m.Like(t, b, {.lo = -2, .hi = 2});
  Value z = SumOfProducts(x, y, static_cast<double>(k.most()), t);
  z.dims = z_dims;
  return m
      .Add(rule.op, {x.name, y.name}, z,
           {Int("transA", ta), Int("transB", tb), Float("alpha", m.Of({1.0f, 0.5f}))}, kContrib)
      .has_value();
}

bool FusedConv(Maker& m, const Rule& rule, Elem t) {
  const Value x = Image(m, t, -4, 4);
  const std::optional<Window> window = AnyWindow(m, x, true);
  if (!window) return false;
  const int64_t c = x.dims[1].a, maps = m.Between(1, 9);
  Dims dims = {maps, c};
  dims.insert(dims.end(), window->kernel.begin(), window->kernel.end());
  const Value w = m.Data(t, dims, -1, 1, m.Chance(2));
  Value y = SumOfProducts(x, w, window->taps * static_cast<double>(c), t);
  y.dims = window->dims, y.dims[1] = maps, y.whole = false;
  y.lo -= 3, y.hi += 3, y.error += Rounded(t, y.hi, kArithmetic);
  std::vector<std::string> inputs = {x.name, w.name, m.Data(t, {maps}, -3, 3).name};
  if (m.Chance(3)) {
    const Value sum = m.Like(t, y.dims, {.lo = -8, .hi = 8});
    inputs.push_back(sum.name), y.lo -= 8, y.hi += 8, y.error += sum.error;
  }
  const std::string f = m.Of<std::string>({"Relu", "Tanh", "Sigmoid", "LeakyRelu", "Clip"});
  std::vector<std::string> attributes = {
      Ints("kernel_shape", window->kernel), Ints("strides", window->strides),
      Ints("dilations", window->dilations), Ints("pads", window->pads), Str("activation", f)};
  if (f == "LeakyRelu") attributes.push_back(FloatList("activation_params", {0.25f}));
  if (f == "Clip") attributes.push_back(FloatList("activation_params", {-2, 3}));
  return m.Add(rule.op, inputs, y, attributes, kContrib).has_value();
}

bool FusedGemm(Maker& m, const Rule& rule, Elem t) {
  const Size rows = m.AnyOpenSize(), k = m.AnyOpenSize(), n = m.AnyOpenSize();
  const bool ta = m.Chance(2), tb = m.Chance(2);
  const Value x = m.Like(t, ta ? Dims{k, rows} : Dims{rows, k}, {.lo = -4, .hi = 4}),
              y = m.Like(t, tb ? Dims{n, k} : Dims{k, n}, {.lo = -2, .hi = 2});
  Value z = SumOfProducts(x, y, static_cast<double>(k.most()), t);
  z.dims = {rows, n}, z.whole = false, z.lo -= 3, z.hi += 3;
  std::vector<std::string> inputs = {x.name, y.name};
  std::vector<std::string> attributes = {Int("transA", ta), Int("transB", tb)};
  if (m.Chance(2)) attributes.push_back(Float("alpha", 0.5f));
  if (m.Chance(2)) {
    const Value c = m.Like(t, m.Chance(2) ? Dims{n} : Dims{rows, 1}, {.lo = -4, .hi = 4});
    inputs.push_back(c.name), z.lo -= 4, z.hi += 4, z.error += c.error;
    if (m.Chance(2)) attributes.push_back(Float("beta", 0.25f));
  }
  z.error += Rounded(t, z.hi, kArithmetic);
  const std::string f = m.Of<std::string>({"", "Relu", "Tanh", "Sigmoid", "LeakyRelu"});
  if (!f.empty()) attributes.push_back(Str("activation", f));
  if (f == "LeakyRelu") attributes.push_back(Float("activation_alpha", 0.25f));
  return m.Add(rule.op, inputs, z, attributes, kContrib).has_value();
}

// Of whole numbers: a root stretches what is near 0 without end.
bool CDist(Maker& m, const Rule& rule, Elem t) {
  const Size width = Within(m.AnyOpenSize(), 0, 31);
  const Need need = {.lo = -2, .hi = 2, .exact = true};
  const Value x = m.Like(t, {m.AnyOpenSize(), width}, need),
              y = m.Like(t, {m.AnyOpenSize(), width}, need);
  const bool root = m.Chance(2);
  Value d =
      Computed(t, {x.dims[0], y.dims[0]}, 16 * std::max(1.0, static_cast<double>(width.most())), 0);
  d.lo = 0, d.whole = !root;
  if (root) d.hi = std::sqrt(d.hi), d.error = Rounded(t, d.hi, kFormula);
  std::vector<std::string> attributes;
  if (root || m.Chance(2)) attributes.push_back(Str("metric", root ? "euclidean" : "sqeuclidean"));
  return m.Add(rule.op, {x.name, y.name}, d, attributes, kContrib).has_value();
}

// One element of each row and column is larger than the others together: where it is, is drawn, so
// that pivots are sought, or on the diagonal of matrices of an open size.
bool Inverse(Maker& m, const Rule& rule, Elem t) {
  const Size n = Within(m.AnyOpenSize(), 0, 9), batch = Within(m.AnyOpenSize(), 0, 3);
  const Dims matrix = {n, n};
  const bool many = m.Chance(2);
  const Value x = m.Like(t, many ? Dims{batch, n, n} : matrix, {.lo = -1, .hi = 1});
  const auto large = 2 * static_cast<double>(n.most());
  std::string add, sum = m.NewName();
  if (n.fixed()) {
    std::vector<size_t> at(static_cast<size_t>(n.a));
    std::iota(at.begin(), at.end(), size_t{0});
    std::shuffle(at.begin(), at.end(), m.random);
    std::vector<double> elements(at.size() * at.size());
    for (size_t i = 0; i < at.size(); ++i) elements[i * at.size() + at[i]] = large;
    add = m.Tensor(t, {n.a, n.a}, elements).name;
  } else {
    const std::string unit = m.NewName();
    add = m.NewName();
    m.Plain("EyeLike", {m.Like(t, matrix).name}, unit);
    m.Plain("Mul", {unit, m.Number(t, large).name}, add);
  }
  m.Plain("Add", {x.name, add}, sum);
  const Value y = Computed(t, x.dims, 1, 2 * x.error + Rounded(t, 1, kFunction));
  return m.Add(rule.op, {sum}, y, {}, kContrib).has_value();
}

// What is forbidden becomes the lowest score; it goes on as one that sums and products stand.
bool NGramRepeatBlock(Maker& m, const Rule& rule, Elem t) {
  const Size batch = Within(m.AnyOpenSize(), 1, 3), length = Within(m.AnyOpenSize(), 0, 17);
  const int64_t words = m.Between(1, 9);
  const auto last = static_cast<double>(m.Between(0, std::min<int64_t>(words, 4) - 1));
  const Value said = m.Data(kI64, {batch, length}, 0, last);
  const Value scores = m.Like(t, {batch, words}, {.lo = -8, .hi = 8});
  const std::string out = m.NewName();
  m.Plain(rule.op, {said.name, scores.name}, out, {Int("ngram_size", m.Between(1, 4))}, kContrib);
  Value y = scores;
  y.lo = -9;
  return m.Add("Max", {out, m.Number(t, -9).name}, y).has_value();
}

// Norms of the last axis, with what is added to it first; the sum is a result too.
bool Norm(Maker& m, const Rule& rule, Elem t) {
  const std::string_view op = rule.op;
  const bool skips = op.starts_with("Skip"), simple = op.find("Simplified") != op.npos;
  const Dims dims = {Within(m.AnyOpenSize(), 1, 3), m.AnyOpenSize(), m.Between(1, 33)};
  const Value x = m.Like(t, dims, {.lo = -4, .hi = 4});
  const Dims last = {dims.back()};
  std::vector<std::string> inputs = {x.name};
  double error = x.error;
  if (skips) {
    const Value skip = m.Like(t, dims, {.lo = -4, .hi = 4});
    inputs.push_back(skip.name), error += skip.error;
  }
  inputs.push_back(m.Data(t, last, 1, 3).name);
  if (!simple) inputs.push_back(m.Chance(2) ? m.Data(t, last, -2, 2).name : "");
  if (skips && m.Chance(2)) inputs.push_back(m.Data(t, last, -2, 2).name);
  const Value y = Computed(t, dims, 40, 8 * error + Rounded(t, 40, 4 * kFunction));
  const std::vector<std::string> attributes = {Float("epsilon", 0.5f)};
  if (!skips || m.Chance(2)) return m.Add(rule.op, inputs, y, attributes, rule.domain).has_value();
  const std::string name = m.NewName(), sum = m.NewName();
  m.PlainAll(rule.op, inputs, {name, "", "", sum}, attributes, rule.domain);
  Value both = y;
  both.lo -= 10, both.hi += 10;
  return m.Add("Add", {name, sum}, both).has_value();
}

bool EmbedNorm(Maker& m, const Rule& rule, Elem t) {
  const Size batch = Within(m.AnyOpenSize(), 1, 3), length = Within(m.AnyOpenSize(), 1, 9);
  const int64_t width = m.Between(1, 33);
  const bool segments = m.Chance(2), masked = m.Chance(2);
  const auto ids = [&](int64_t most) {
    return m.Data(kI32, {batch, length}, 0, static_cast<double>(most)).name;
  };
  const auto table = [&](int64_t rows) { return m.Data(t, {rows, width}, -4, 4).name; };
  std::vector<std::string> inputs = {ids(10), segments ? ids(2) : "", table(11), table(9),
                                     segments ? table(3) : ""};
  inputs.push_back(m.Data(t, {width}, 1, 3).name), inputs.push_back(m.Data(t, {width}, -2, 2).name);
  if (masked) inputs.push_back(m.Data(kI32, {batch, length}, 0, 1).name);
  std::vector<Value> results = {
      Computed(t, {batch, length, width}, 40, Rounded(t, 40, 4 * kFunction))};
  if (masked) results.push_back({"", kI32, {batch}, 0, 9});
  return m.AddAll(rule.op, inputs, results, {Float("epsilon", 0.5f)}, kContrib);
}

// Scores are told apart by more than rounding, so that the chosen are the same.
std::string Router(Maker& m, Elem t, Size tokens, int64_t experts) {
  const std::string scores = m.Data(t, {tokens, 1}, -2, 2).name, apart = m.NewName();
  std::vector<double> steps;
  for (int64_t i = 0; i < experts; ++i) steps.push_back(static_cast<double>((i * 3) % 4) / 2);
  m.Plain("Add", {scores, m.Tensor(t, {experts}, steps).name}, apart);
  return apart;
}

bool Experts(Maker& m, const Rule& rule, Elem t) {
  const Size tokens = Within(m.AnyOpenSize(), 1, 9);
  const int64_t experts = m.Between(1, 4), hidden = m.Between(1, 9), inner = m.Between(1, 9);
  const std::string f = m.Of<std::string>({"relu", "gelu", "silu", "identity"});
  const Value x = m.Like(t, {tokens, hidden}, {.lo = -2, .hi = 2});
  const auto weight = [&](const Ints64& dims) {
    return m.Data(t, {dims.begin(), dims.end()}, -0.5, 0.5, false).name;
  };
  const std::string router = Router(m, t, tokens, experts);
  const std::vector<std::string> inputs = {x.name, router, weight({experts, inner, hidden}),
                                           m.Chance(2) ? weight({experts, inner}) : "",
                                           weight({experts, hidden, inner})};
  const double first = static_cast<double>(hidden) + 0.5,
               most = 0.5 * first * static_cast<double>(inner);
  const Value y =
      Computed(t, {tokens, hidden}, most,
               x.error * static_cast<double>(inner * hidden) * 0.5 + Rounded(t, most, kFormula));
  return m
      .Add(rule.op, inputs, y,
           {Int("k", m.Between(1, experts)), Str("activation_type", f),
            Int("normalize_routing_weights", m.Chance(2))},
           kContrib)
      .has_value();
}

bool QuantizedExperts(Maker& m, const Rule& rule, Elem t) {
  const Size tokens = Within(m.AnyOpenSize(), 1, 9);
  const int64_t experts = m.Between(1, 4), bits = m.Of<int64_t>({4, 8}), packed = 8 / bits,
                hidden = packed * m.Between(1, 8), inner = packed * m.Between(1, 8);
  const Value x = m.Like(t, {tokens, hidden}, {.lo = -2, .hi = 2});
  const std::string router = Router(m, t, tokens, experts);
  const auto weight = [&](const Ints64& dims) { return m.Constant(kU8, dims, 0, 255).name; };
  const double step = bits == 4 ? 1.0 / 16 : 1.0 / 256;
  const auto scales = [&](int64_t rows) {
    return m.Constant(t, {experts, rows}, step, step, false).name;
  };
  const double most = 0.5 * static_cast<double>(hidden) * static_cast<double>(inner);
  const Value y =
      Computed(t, {tokens, hidden}, most,
               x.error * static_cast<double>(inner * hidden) * 0.5 + Rounded(t, most, kFormula));
  return m
      .Add(rule.op,
           {x.name, router, weight({experts, inner, hidden / packed}), scales(inner), "",
            weight({experts, hidden, inner / packed}), scales(hidden)},
           y,
           {Int("k", m.Between(1, experts)), Int("expert_weight_bits", bits),
            Str("activation_type", m.Of<std::string>({"silu", "relu"})),
            Int("normalize_routing_weights", m.Chance(2))},
           kContrib)
      .has_value();
}

// Weights of 2, 4 or 8 bits in blocks, packed in bytes.
bool MatMulBits(Maker& m, const Rule& rule, Elem t) {
  const int64_t bits = m.Of<int64_t>({2, 4, 8}), block = m.Of<int64_t>({16, 32}),
                k = m.Of<int64_t>({1, 16, 17, 33, 64}), n = m.Between(1, 17),
                blocks = (k + block - 1) / block;
  const Size rows = m.AnyOpenSize();
  const Value x = m.Like(t, m.Chance(2) ? Dims{rows, k} : Dims{2, rows, k}, {.lo = -2, .hi = 2});
  const double step = std::pow(2.0, -static_cast<double>(bits));
  std::vector<std::string> inputs = {x.name,
                                     m.Constant(kU8, {n, blocks, block * bits / 8}, 0, 255).name,
                                     m.Constant(t, {n, blocks}, step, step, false).name};
  if (m.Chance(2)) inputs.push_back(m.Constant(kU8, {n, (blocks * bits + 7) / 8}, 0, 255).name);
  const double most = 2 * static_cast<double>(k);
  Value y = x;
  y.dims.back() = n, y.lo = -most, y.hi = most, y.whole = false;
  y.error = x.error * static_cast<double>(k) + Rounded(t, most, kArithmetic);
  return m
      .Add(rule.op, inputs, y,
           {Int("K", k), Int("N", n), Int("bits", bits), Int("block_size", block)}, kContrib)
      .has_value();
}

bool GatherBits(Maker& m, const Rule& rule, Elem t) {
  const int64_t bits = m.Of<int64_t>({2, 4, 8}), rows = m.Between(1, 9), blocks = m.Between(1, 3),
                width = 16 * blocks;
  const Value at = m.Data(m.Chance(2) ? kI32 : kI64, m.AnyDims(0, 2, 30),
                          static_cast<double>(-rows), static_cast<double>(rows - 1));
  const double step = std::pow(2.0, -static_cast<double>(bits));
  std::vector<std::string> inputs = {m.Constant(kU8, {rows, width * bits / 8}, 0, 255).name,
                                     at.name,
                                     m.Constant(t, {rows, blocks}, step, 4 * step, false).name};
  if (m.Chance(2)) inputs.push_back(m.Constant(kU8, {rows, (blocks * bits + 7) / 8}, 0, 255).name);
  Value y = Computed(t, at.dims, 4, Rounded(t, 4, kArithmetic));
  y.dims.push_back(width);
  return m.Add(rule.op, inputs, y, {Int("bits", bits), Int("block_size", 16)}, kContrib)
      .has_value();
}

constexpr Rule kRules[] = {
    {"Gelu", 18, kMost, Activation, kContrib},
    {"BiasGelu", 18, kMost, Activation, kContrib},
    {"FastGelu", 18, kMost | Only(kBF16), Activation, kContrib},
    {"QuickGelu", 18, kMost, Activation, kContrib},
    {"FusedMatMul", 18, kFloats, FusedMatMul, kContrib},
    {"FusedConv", 18, kMost, FusedConv, kContrib},
    {"FusedGemm", 18, kFloats, FusedGemm, kContrib},
    {"CDist", 18, kFloats, CDist, kContrib},
    {"Inverse", 18, kFloats, Inverse, kContrib},
    {"NGramRepeatBlock", 18, kFloats, NGramRepeatBlock, kContrib},
    {"LayerNormalization", 18, kMost, Norm, kContrib},
    {"SimplifiedLayerNormalization", 18, kMost, Norm, kContrib},
    {"SimplifiedLayerNormalization", 18, kMost, Norm},
    {"SkipLayerNormalization", 18, kMost, Norm, kContrib},
    {"SkipSimplifiedLayerNormalization", 18, kMost, Norm, kContrib},
    {"EmbedLayerNormalization", 18, kMost, EmbedNorm, kContrib},
    {"MoE", 18, kMost, Experts, kContrib},
    {"QMoE", 18, kMost, QuantizedExperts, kContrib},
    {"MatMulNBits", 18, kMost, MatMulBits, kContrib},
    {"GatherBlockQuantized", 18, kMost, GatherBits, kContrib},
};

}  // namespace

std::span<const Rule> ContribRules() { return kRules; }

}  // namespace tenon::fuzz
