// What exporters write for one operator, in several: the compiler raises these to single operators,
// so random neighbours hardly ever meet them.
#include <cmath>

#include "fuzz/graph/rules.h"

namespace tenon::fuzz {

namespace {

// A step of a pattern: its result is within -most … most and only the pattern's own.
class Steps {
 public:
  Steps(Maker& m, Elem t) : m_(m), t_(t) {}
  std::string operator()(const char* op, const std::vector<std::string>& inputs,
                         const std::vector<std::string>& attributes = {}) {
    const std::string name = m_.NewName();
    m_.Plain(op, inputs, name, attributes);
    return name;
  }
  std::string Number(double value) { return m_.Number(t_, value).name; }

 private:
  Maker& m_;
  Elem t_;
};

Value Loosely(const Value& x, double most, double slope) {
  Value y = x;
  y.lo = -most, y.hi = most, y.whole = false;
  y.error = slope * x.error + InfoOf(x.elem).unit * 8 * kFunction * std::max(1.0, most);
  return y;
}

bool Gelu(Maker& m, const Rule&, Elem t) {
  const Value x = m.Take(t, {.lo = -8, .hi = 8});
  Steps s(m, t);
  const std::string e = s("Erf", {s("Div", {x.name, s.Number(std::sqrt(2.0))})});
  const std::string scaled = s("Mul", {x.name, s("Add", {e, s.Number(1)})});
  return m.Add("Mul", {scaled, s.Number(0.5)}, Loosely(x, 8, 2)).has_value();
}

bool HardSwish(Maker& m, const Rule&, Elem t) {
  const Value x = m.Take(t, {.lo = -8, .hi = 8});
  Steps s(m, t);
  const std::string shifted = s("Add", {x.name, s.Number(3)});
  const std::string clipped = s("Clip", {shifted, s.Number(0), s.Number(6)});
  return m.Add("Mul", {x.name, s("Div", {clipped, s.Number(6)})}, Loosely(x, 8, 3)).has_value();
}

bool Softmax(Maker& m, const Rule&, Elem t) {
  const Value x = m.Take(t, {.min_rank = 1, .lo = -8, .hi = 8, .filled = true});
  Steps s(m, t);
  const std::string axis = m.List({-1}).name;
  const std::string most = s("ReduceMax", {x.name, axis});
  const std::string e = s("Exp", {s("Sub", {x.name, most})});
  return m.Add("Div", {e, s("ReduceSum", {e, axis})}, Loosely(x, 1, 2)).has_value();
}

bool LayerNorm(Maker& m, const Rule&, Elem t) {
  const Value x = m.Take(t, {.min_rank = 1, .lo = -8, .hi = 8, .filled = true});
  Steps s(m, t);
  const std::string axis = m.List({-1}).name;
  const std::string d = s("Sub", {x.name, s("ReduceMean", {x.name, axis})});
  const std::string var = s("ReduceMean", {s("Mul", {d, d}), axis});
  const std::string root = s("Sqrt", {s("Add", {var, s.Number(0.5)})});
  const Value scale = m.Data(t, {x.dims.back()}, 1, 3);
  return m.Add("Mul", {s("Div", {d, root}), scale.name}, Loosely(x, 48, 30)).has_value();
}

// softmax(x kᵀ / 16 + mask) · x, with k near x.
bool Attention(Maker& m, const Rule&, Elem t) {
  const Value x = m.Take(t, {.min_rank = 3, .max_rank = 4, .lo = -4, .hi = 4, .filled = true});
  Steps s(m, t);
  Ints64 perm;
  for (size_t i = 0; i < x.rank(); ++i) perm.push_back(static_cast<int64_t>(i));
  std::swap(perm[x.rank() - 1], perm[x.rank() - 2]);
  const std::string k = s("Transpose", {s("Add", {x.name, s.Number(1)})}, {Ints("perm", perm)});
  std::string scores = s("Mul", {s("MatMul", {x.name, k}), s.Number(1.0 / 16)});
  if (m.Chance(2)) {
    const Size rows = x.dims[x.rank() - 2];
    scores = s("Add", {scores, m.Data(t, {rows, rows}, -2, 0).name});
  }
  const double k_length = static_cast<double>(x.dims.back().most());
  Value y = Loosely(x, 4, 4 + k_length * 4);
  y.error += InfoOf(t).unit * 4 * k_length;
  return m.Add("MatMul", {s("Softmax", {scores}, {Int("axis", -1)}), x.name}, y).has_value();
}

constexpr Types kRaised = Only(kF32) | Only(kF16) | Only(kF64);

constexpr Rule kRules[] = {
    {"(gelu)", 18, kRaised, Gelu},           {"(hard swish)", 18, kRaised, HardSwish},
    {"(softmax)", 18, kRaised, Softmax},     {"(layer norm)", 18, kRaised, LayerNorm},
    {"(attention)", 18, kRaised, Attention},
};

}  // namespace

std::span<const Rule> PatternRules() { return kRules; }

}  // namespace tenon::fuzz
