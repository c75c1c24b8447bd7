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

// One of two sizes, by what one of them is: Where(n == 1, k, n). It is what two that broadcast come
// to, or looks like it.
struct Chosen {
  std::string name;  // a list of one
  Size size;
};
Chosen DrawChosen(Maker& m, const Value& like, Size n, int64_t axis) {
  Steps s(m, kI64);
  const auto size_of = [&](const Value& v, int64_t at) {
    return s("Gather", {s("Shape", {v.name}), m.List({at}).name});
  };
  const std::string own = size_of(like, axis);
  const int64_t limit = m.Of<int64_t>({1, 1, 0, n.a, n.b});
  Size other = m.AnySize();
  std::string second;
  const Value beside = m.Take(like.elem, {.min_rank = 1, .max_rank = 3});
  if (m.Chance(3)) {
    const size_t at = m.Below(beside.rank());
    other = beside.dims[at];
    second = size_of(beside, static_cast<int64_t>(at));
  } else {
    second = m.List({other.a}).name;
  }
  const std::string op = m.Of<std::string>({"Equal", "Equal", "Less", "Greater"});
  const std::string is = s(op.c_str(), {own, m.List({limit}).name});
  const bool swapped = m.Chance(2);
  const Size size = Size::Of(
      [&](int64_t a, int64_t b) {
        const bool holds = op == "Equal" ? a == limit : op == "Less" ? a < limit : a > limit;
        return holds != swapped ? b : a;
      },
      n, other);
  return {s("Where", {is, swapped ? own : second, swapped ? second : own}), size};
}

// What is made of it meets a value of the size that it may be.
bool ChosenSize(Maker& m, const Rule&, Elem t) {
  const Value like = m.Take(t, {.min_rank = 1, .max_rank = 3});
  const size_t axis = m.Below(like.rank());
  const auto [name, size] = DrawChosen(m, like, like.dims[axis], static_cast<int64_t>(axis));
  std::optional<Value> y;
  if (m.Chance(3)) {
    Value part = like;
    part.dims[axis] =
        Size::Of([](int64_t a, int64_t b) { return std::min(a, b); }, part.dims[axis], size);
    y = m.Add("Slice",
              {like.name, m.List({0}).name, name, m.List({static_cast<int64_t>(axis)}).name}, part);
  } else if (m.Chance(2)) {
    const int64_t count = m.Between(1, 3);
    Value tiled = m.Like(t, {count});
    const std::string x = tiled.name;
    tiled.dims[0] = size * Size(count);
    y = m.Add("Tile", {x, name}, tiled);
  } else {
    const int64_t rows = m.Between(1, 3);
    Value wide = m.Like(t, {rows, 1});
    const std::string x = wide.name, shape = Steps(m, kI64)("Concat", {m.List({rows}).name, name},
                                                            {Int("axis", 0)});
    wide.dims[1] = size;
    y = m.Add("Expand", {x, shape}, wide);
  }
  if (!y) return false;
  const Value beside = m.Like(t, {like.dims[axis]});
  const std::optional<Dims> both = Broadcast(y->dims, beside.dims);
  if (!both) return true;
  Value sum = *y;
  sum.dims = *both;
  if (t == kBool) {
    m.Add("And", {y->name, beside.name}, sum);
    return true;
  }
  sum.lo += beside.lo, sum.hi += beside.hi, sum.whole = sum.whole && beside.whole;
  sum.error += beside.error + (sum.whole ? 0 : Rounded(t, sum.bound(), kArithmetic));
  m.Add("Add", {y->name, beside.name}, sum);
  return true;
}

constexpr Types kRaised = Only(kF32) | Only(kF16) | Only(kF64);

constexpr Rule kRules[] = {
    {"(gelu)", 18, kRaised, Gelu},           {"(hard swish)", 18, kRaised, HardSwish},
    {"(softmax)", 18, kRaised, Softmax},     {"(layer norm)", 18, kRaised, LayerNorm},
    {"(attention)", 18, kRaised, Attention}, {"(chosen size)", 18, kAll, ChosenSize},
};

}  // namespace

std::span<const Rule> PatternRules() { return kRules; }

}  // namespace tenon::fuzz
