// Operators between floats and integers of few bits.
#include <cmath>

#include "fuzz/graph/rules.h"

namespace tenon::fuzz {

namespace {

// Scales are powers of two: quotients are exact, and no rounding is a matter of the last bit.
bool Quantize(Maker& m, const Rule& rule, Elem t) {
  Elem to = m.Of<Elem>({kI8, kU8, kI16, kU16});
  if (m.Chance(2)) to = m.Of<Elem>({kI4, kU4, kI2, kU2, kF8E4M3FN, kF8E4M3FNUZ, kF8E5M2});
  if (InfoOf(to).since > m.opset()) to = kI4;
  const bool is_float = In(kF8, to);  // they have no zero point but 0
  const double reach = is_float ? 4 : 1e18;
  const Value x = m.Take(t, {.lo = -reach, .hi = reach, .exact = true});
  const std::string scale = m.Number(t, m.Of({0.5, 1.0, 2.0, 4.0})).name;
  const ElemInfo& info = InfoOf(to);
  Value y = x;
  y.elem = to, y.hi = info.most;
  y.lo = info.least < 0 ? -info.most - (is_float ? 0 : 1) : 0;
  const auto zero =
      is_float ? 0.0 : static_cast<double>(m.Between(0, 9) % static_cast<int64_t>(info.most + 1));
  return m.Add(rule.op, {x.name, scale, m.Number(to, zero).name}, y).has_value();
}

bool Dequantize(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.lo = -200, .hi = 200});
  const Elem to = m.Of<Elem>({kF32, kF32, kF16, kBF16});
  std::vector<std::string> inputs = {x.name, m.Number(to, m.Of({1.0, 2.0})).name};
  double zero = 0;
  if (m.Chance(2) && !In(Only(kI32) | kF8 | Only(kF4E2M1), t)) {
    zero = std::min(3.0, InfoOf(t).most);
    inputs.push_back(m.Number(t, zero).name);
  }
  Value y = x;
  y.elem = to, y.lo = (x.lo - zero) * 2, y.hi = std::max(x.hi, x.hi - zero) * 2;
  if (t == kF4E2M1) y.lo = -12, y.hi = 12, y.whole = false;
  return m.Add(rule.op, inputs, y).has_value();
}

bool DynamicQuantize(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.min_rank = 1, .exact = true, .filled = true});
  // Its range is rounded to 255 steps, so an element may be a step away: dequantised it is right.
  const std::string y = m.NewName(), scale = m.NewName(), zero = m.NewName();
  m.PlainAll(rule.op, {x.name}, {y, scale, zero});
  Value back = x;
  back.whole = false;
  back.lo -= 1, back.hi += 1;
  back.error = (std::max(0.0, x.hi) - std::min(0.0, x.lo)) / 255 * 1.5;
  return m.Add("DequantizeLinear", {y, scale, zero}, back).has_value();
}

bool QLinearMatMul(Maker& m, const Rule& rule, Elem t) {
  const Size rows = m.AnyOpenSize(), n = m.AnyOpenSize();
  const int64_t k = m.Between(1, 33);
  const Value a = m.Like(t, {rows, k}), b = m.Like(t, {k, n});
  const auto scale = [&](float v) { return m.Number(kF32, v).name; };
  const std::string zero = m.Number(t, 1).name;
  const ElemInfo& info = InfoOf(t);
  Value y = a;
  y.dims = {rows, n}, y.hi = info.most, y.lo = t == kI8 ? -128 : 0;
  return m.Add(rule.op, {a.name, scale(0.5f), zero, b.name, scale(1), zero, scale(2), zero}, y)
      .has_value();
}

constexpr Rule kRules[] = {
    {"QuantizeLinear", 21, kFloats & ~Only(kF64), Quantize},
    {"DequantizeLinear", 21,
     kBytes | Only(kI16) | Only(kU16) | Only(kI32) | kF8 | kFewBits | Only(kF4E2M1), Dequantize},
    {"DynamicQuantizeLinear", 11, Only(kF32), DynamicQuantize},
    {"QLinearMatMul", 21, kBytes, QLinearMatMul},
};

}  // namespace

std::span<const Rule> QuantizeRules() { return kRules; }

}  // namespace tenon::fuzz
