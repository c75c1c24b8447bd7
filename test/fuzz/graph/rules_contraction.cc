// Products, convolutions, pools.
#include <cmath>

#include "fuzz/graph/windows.h"

namespace tenon::fuzz {

namespace {

double Small(Elem t) { return In(kUnsigned, t) ? 0.0 : -2.0; }

bool MatMul(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.min_rank = 1, .max_rank = 3, .lo = Small(t) * 4, .hi = 8});
  const Size k = x.dims.back(), n = m.AnyOpenSize();
  Dims w = {k, n};
  if (x.rank() >= 3 && m.Chance(3)) w.insert(w.begin(), x.dims.begin(), x.dims.end() - 2);
  const bool vector = x.rank() > 1 && m.Chance(6);
  if (vector) w = {k};
  const Value y = m.Like(t, w, {.lo = Small(t), .hi = 2});
  Value z = SumOfProducts(x, y, static_cast<double>(k.most()), t);
  z.dims = {x.dims.begin(), x.dims.end() - 1};
  if (!vector) z.dims.push_back(n);
  return m.Add(rule.op, {x.name, y.name}, z).has_value();
}

bool Gemm(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.min_rank = 2, .max_rank = 2, .lo = Small(t) * 4, .hi = 8});
  const bool ta = m.Chance(2), tb = m.Chance(2);
  const Size rows = x.dims[ta ? 1 : 0], k = x.dims[ta ? 0 : 1], n = m.AnyOpenSize();
  const Value y = m.Like(t, tb ? Dims{n, k} : Dims{k, n}, {.lo = Small(t), .hi = 2});
  Value z = SumOfProducts(x, y, static_cast<double>(k.most()), t);
  z.dims = {rows, n};
  std::vector<std::string> inputs = {x.name, y.name};
  std::vector<std::string> attributes = {Int("transA", ta), Int("transB", tb)};
  if (m.opset() < 11 || m.Chance(2)) {
    const Value c = m.Like(t, m.Chance(2) ? Dims{n} : Dims{rows, 1}, {.lo = Small(t), .hi = 4});
    inputs.push_back(c.name);
    z.hi += c.bound(), z.lo -= In(kUnsigned, t) ? 0 : c.bound(), z.error += c.error;
    z.whole = z.whole && c.whole;
    if (IsFloat(t) && !z.whole) z.error += InfoOf(t).unit * std::max(1.0, z.bound());
  }
  if (m.Chance(3)) {
    attributes.push_back(Float("alpha", 2));
    z.hi *= 2, z.lo *= 2, z.error *= 2;
  }
  return m.Add(rule.op, inputs, z, attributes).has_value();
}

bool Einsum(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.min_rank = 2, .max_rank = 3, .lo = Small(t) * 2, .hi = 4});
  const std::string letters = std::string("ijk").substr(0, x.rank());
  switch (m.Below(3)) {
    case 0: {  // a product
      const Size n = m.AnyOpenSize();
      const Value y = m.Like(t, {x.dims.back(), n}, {.lo = Small(t), .hi = 2});
      Value z = SumOfProducts(x, y, static_cast<double>(x.dims.back().most()), t);
      z.dims = x.dims, z.dims.back() = n;
      std::string out = letters;
      out.back() = 'n';
      return m
          .Add(rule.op, {x.name, y.name}, z,
               {Str("equation", letters + "," + letters.back() + "n->" + out)})
          .has_value();
    }
    case 1: {  // other axes' order
      Value z = x;
      std::swap(z.dims[0], z.dims[1]);
      std::string out = letters;
      std::swap(out[0], out[1]);
      return m.Add(rule.op, {x.name}, z, {Str("equation", letters + "->" + out)}).has_value();
    }
    default: {  // a sum
      const auto n = static_cast<double>(std::max<int64_t>(1, x.dims.back().most()));
      Value one = x;
      one.lo = one.hi = 1, one.error = 0, one.whole = true;
      Value z = SumOfProducts(x, one, n, t);
      z.dims = {x.dims.begin(), x.dims.end() - 1};
      return m
          .Add(rule.op, {x.name}, z,
               {Str("equation", letters + "->" + letters.substr(0, x.rank() - 1))})
          .has_value();
    }
  }
}

int64_t AnyGroup(Maker& m, int64_t channels) {
  int64_t group = m.Chance(2) ? 1 : m.Chance(2) ? channels : m.Between(1, channels);
  while (channels % group != 0) --group;
  return group;
}

bool Conv(Maker& m, const Rule& rule, Elem t) {
  const bool transposed = rule.op == std::string_view("ConvTranspose");
  const Value x = Image(m, t, -8, 8);
  const int64_t c = x.dims[1].a, group = AnyGroup(m, c);
  const std::optional<Window> window = AnyWindow(m, x, true, transposed);
  if (!window) return false;
  const int64_t per_group = group > 1 ? m.Between(1, 2) : m.Between(1, 9);
  Ints64 dims = transposed ? Ints64{c, per_group} : Ints64{per_group * group, c / group};
  dims.insert(dims.end(), window->kernel.begin(), window->kernel.end());
  const Value w = m.Data(t, {dims.begin(), dims.end()}, -2, 2, m.Chance(2));
  Value y = SumOfProducts(x, w, window->taps * static_cast<double>(c / group), t);
  y.dims = window->dims, y.dims[1] = per_group * group;
  std::vector<std::string> inputs = {x.name, w.name};
  if (m.Chance(2)) {
    inputs.push_back(m.Data(t, {per_group * group}, -3, 3).name);
    y.lo -= 3, y.hi += 3;
  }
  return m
      .Add(rule.op, inputs, y,
           {Ints("kernel_shape", window->kernel), Ints("strides", window->strides),
            Ints("dilations", window->dilations), Ints("pads", window->pads), Int("group", group)})
      .has_value();
}

bool Pool(Maker& m, const Rule& rule, Elem t) {
  const std::string_view op = rule.op;
  const Value x = Image(m, t, op == "LpPool" ? 1 : -100, 100);
  const std::optional<Window> window = AnyWindow(m, x, false);
  if (!window) return false;
  for (size_t i = 0; i < window->kernel.size(); ++i) {
    // Windows that lie in the padding alone have no mean.
    if (window->pads[i] + window->pads[i + window->kernel.size()] >= window->kernel[i] &&
        window->kernel[i] > 1)
      return false;
    if (window->kernel[i] == 1 && window->pads[i] + window->pads[i + window->kernel.size()] > 0)
      return false;
  }
  Value y = x;
  y.dims = window->dims;
  std::vector<std::string> attributes = {Ints("kernel_shape", window->kernel),
                                         Ints("strides", window->strides),
                                         Ints("pads", window->pads)};
  if (op == "MaxPool") {
    if (m.Chance(3)) {
      Value indices = y;
      y.name = indices.name = "";
      if (!x.whole || x.error != 0) return false;
      indices.elem = kI64, indices.lo = 0, indices.hi = static_cast<double>(Count(x.dims).most());
      return m.AddAll(rule.op, {x.name}, {y, indices}, attributes);
    }
    return m.Add(rule.op, {x.name}, y, attributes).has_value();
  }
  y.whole = false;
  if (op == "AveragePool") {
    attributes.push_back(Int("count_include_pad", m.Chance(2)));
    y.lo = std::min(0.0, y.lo), y.hi = std::max(0.0, y.hi);
  }
  if (op == "LpPool") y.lo = 0, y.hi = x.bound() * window->taps, y.error *= window->taps;
  y.error += InfoOf(t).unit * kFunction * std::max(1.0, y.bound());
  return m.Add(rule.op, {x.name}, y, attributes).has_value();
}

bool GlobalPool(Maker& m, const Rule& rule, Elem t) {
  const std::string_view op = rule.op;
  const Value x = Image(m, t, op == "GlobalLpPool" ? 1 : -100, 100);
  Value y = x;
  double n = 1;
  for (size_t i = 2; i < x.rank(); ++i) n *= static_cast<double>(x.dims[i].most()), y.dims[i] = 1;
  if (op == "GlobalLpPool") y.hi = x.bound() * n, y.lo = 0, y.error *= n;
  if (op != "GlobalMaxPool") {
    y.whole = false;
    y.error += InfoOf(t).unit * (kFunction + std::sqrt(n)) * std::max(1.0, y.bound());
  }
  return m.Add(rule.op, {x.name}, y).has_value();
}

bool MatMulInteger(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.min_rank = 2, .max_rank = 3});
  const Size n = m.AnyOpenSize();
  const Elem other = m.Chance(2) ? kI8 : kU8;
  const Value y = m.Like(other, {x.dims.back(), n}, {});
  std::vector<std::string> inputs = {x.name, y.name};
  double grow = 1;
  if (m.Chance(2)) {
    inputs.push_back(m.Number(t, 3).name), grow *= 4;
    if (m.Chance(2)) inputs.push_back(m.Number(other, 2).name), grow *= 3;
  }
  Value z = SumOfProducts(x, y, grow * static_cast<double>(x.dims.back().most()), kI32);
  z.dims = x.dims, z.dims.back() = n;
  return m.Add(rule.op, inputs, z).has_value();
}

bool ConvInteger(Maker& m, const Rule& rule, Elem t) {
  const Value x = Image(m, t, -127, 127);
  const std::optional<Window> window = AnyWindow(m, x, true);
  if (!window) return false;
  const int64_t c = x.dims[1].a, maps = m.Between(1, 9);
  Dims dims = {maps, c};
  dims.insert(dims.end(), window->kernel.begin(), window->kernel.end());
  const Elem other = m.Chance(2) ? kI8 : kU8;
  const Value w = m.Data(other, dims, other == kI8 ? -4 : 0, 4);
  std::vector<std::string> inputs = {x.name, w.name};
  if (m.Chance(2)) inputs.push_back(m.Number(t, 3).name);
  Value y = SumOfProducts(x, w, 4 * window->taps * static_cast<double>(c), kI32);
  y.dims = window->dims, y.dims[1] = maps;
  return m
      .Add(rule.op, inputs, y,
           {Ints("kernel_shape", window->kernel), Ints("strides", window->strides),
            Ints("dilations", window->dilations), Ints("pads", window->pads)})
      .has_value();
}

// q, k and v of one sequence.
bool Attention(Maker& m, const Rule& rule, Elem t) {
  const Dims batch = {m.Between(1, 2), m.Between(1, 3)};
  const Size rows = m.AnyOpenSize(), columns = m.AnyOpenSize();
  const int64_t d = m.Between(1, 9), e = m.Between(1, 9);
  if (columns.least() == 0) return false;
  const auto of = [&](Size length, int64_t width) {
    return m.Like(t, {batch[0], batch[1], length, width}, {.lo = -2, .hi = 2});
  };
  const Value q = of(rows, d), k = of(columns, d), v = of(columns, e);
  Value y = v;
  y.dims[2] = rows, y.whole = false;
  y.lo = -v.bound(), y.hi = v.bound();
  y.error =
      v.error + (q.error + k.error) * 8 + InfoOf(t).unit * 4 * kFunction * std::max(1.0, y.bound());
  return m.Add(rule.op, {q.name, k.name, v.name}, y, {Int("is_causal", m.Chance(3))}).has_value();
}

constexpr Types kMultiplied = kFloats | kWide;

constexpr Rule kRules[] = {
    {"MatMul", 13, kMultiplied, MatMul},
    {"Gemm", 13, kMultiplied, Gemm},
    {"Einsum", 12, kNumbers & ~Only(kBF16), Einsum},
    {"Einsum", 28, Only(kBF16), Einsum},
    {"Conv", 22, kFloats, Conv},
    {"ConvTranspose", 22, kFloats, Conv},
    {"MaxPool", 22, kFloats | kBytes, Pool},
    {"AveragePool", 22, kFloats, Pool},
    {"LpPool", 22, kFloats, Pool},
    {"GlobalAveragePool", 22, kFloats, GlobalPool},
    {"GlobalMaxPool", 22, kFloats, GlobalPool},
    {"GlobalLpPool", 22, kFloats, GlobalPool},
    {"MatMulInteger", 10, kBytes, MatMulInteger},
    {"ConvInteger", 10, kBytes, ConvInteger},
    {"Attention", 23, kFloats, Attention},
    // As sets before defined them, of the types that they knew.
    {"MatMul", 9, kOldNumbers, MatMul, "", 13},
    {"Gemm", 9, kOldNumbers, Gemm, "", 13},
    {"Conv", 1, kIeee, Conv, "", 22},
    {"ConvTranspose", 1, kIeee, Conv, "", 22},
    {"MaxPool", 8, kIeee, Pool, "", 12},
    {"MaxPool", 12, kIeee | kBytes, Pool, "", 22},
    {"AveragePool", 7, kIeee, Pool, "", 22},
    {"LpPool", 2, kIeee, Pool, "", 22},
    {"GlobalAveragePool", 1, kIeee, GlobalPool, "", 22},
    {"GlobalMaxPool", 1, kIeee, GlobalPool, "", 22},
    {"GlobalLpPool", 2, kIeee, GlobalPool, "", 22},
};

}  // namespace

std::span<const Rule> ContractionRules() { return kRules; }

}  // namespace tenon::fuzz
