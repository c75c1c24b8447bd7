// Operators that work element by element.
#include <cmath>

#include "fuzz/graph/rules.h"

namespace tenon::fuzz {

namespace {

double Unit(const Value& v) { return InfoOf(v.elem).unit * std::max(1.0, v.bound()); }

// A function of one number: where it is defined, what it gives, and how far it stretches errors.
struct Function {
  const char* op;
  double lo, hi;          // operands
  double out_lo, out_hi;  // results; out_lo > out_hi: the operand's range
  double slope;
  Effort effort;
  bool exact;  // whole results of whole operands; operands without error, if slope is 0
};

constexpr Function kFunctions[] = {
    {"Relu", -1e18, 1e18, 1, 0, 1, kMoves, true},
    {"Sigmoid", -30, 30, 0, 1, 1, kFunction, false},
    {"Tanh", -30, 30, -1, 1, 1, kFunction, false},
    {"Exp", -4, 4, 0, 55, 55, kFunction, false},
    {"Log", 1, 1e18, 0, 15, 1, kFunction, false},
    {"Sqrt", 1, 1e18, 1, 4e3, 0.5, kArithmetic, false},
    {"Sin", -30, 30, -1, 1, 1, kFunction, false},
    {"Cos", -30, 30, -1, 1, 1, kFunction, false},
    {"Tan", -1, 1, -1.6, 1.6, 3.5, kFunction, false},
    {"Asin", -0.75, 0.75, -0.9, 0.9, 1.6, kFunction, false},
    {"Acos", -0.75, 0.75, 0.7, 2.5, 1.6, kFunction, false},
    {"Atan", -100, 100, -1.6, 1.6, 1, kFunction, false},
    {"Sinh", -3, 3, -11, 11, 11, kFunction, false},
    {"Cosh", -3, 3, 1, 11, 11, kFunction, false},
    {"Asinh", -50, 50, -5, 5, 1, kFunction, false},
    {"Acosh", 2, 50, 1, 5, 1, kFunction, false},
    {"Atanh", -0.75, 0.75, -1, 1, 2.3, kFunction, false},
    {"Erf", -30, 30, -1, 1, 1.2, kFunction, false},
    {"Floor", -1e18, 1e18, 1, 0, 0, kMoves, true},
    {"Ceil", -1e18, 1e18, 1, 0, 0, kMoves, true},
    {"Round", -1e18, 1e18, 1, 0, 0, kMoves, true},
    {"Reciprocal", 1, 1e18, 0, 1, 1, kArithmetic, false},
    {"Softplus", -30, 30, 0, 31, 1, kFunction, false},
    {"HardSwish", -100, 100, -1, 100, 1.5, kFormula, false},
    {"HardSigmoid", -100, 100, 0, 1, 1, kFormula, false},
    {"Elu", -30, 100, -1, 100, 1, kFunction, false},
    {"Selu", -30, 100, -2, 106, 2, kFunction, false},
    {"Celu", -30, 100, -1, 100, 1, kFunction, false},
    {"LeakyRelu", -1e4, 1e4, 1, 0, 1, kArithmetic, false},
    {"Softsign", -1e3, 1e3, -1, 1, 1, kArithmetic, false},
    {"Swish", -30, 30, -1, 30, 1.1, kFunction, false},
    {"Mish", -30, 30, -1, 30, 1.1, kFunction, false},
    {"Gelu", -30, 30, -1, 30, 1.2, kFunction, false},
    {"ThresholdedRelu", -1e18, 1e18, 1, 0, 0, kMoves, true},
    {"Shrink", -1e18, 1e18, 1, 0, 0, kArithmetic, true},
    {"Sign", -1e18, 1e18, -1, 1, 0, kMoves, true},
    {"Identity", -1e18, 1e18, 1, 0, 1, kMoves, true},
    {"Dropout", -1e18, 1e18, 1, 0, 1, kMoves, true},
};

bool Unary(Maker& m, const Rule& rule, Elem t) {
  for (const Function& f : kFunctions) {
    if (f.op != std::string_view(rule.op)) continue;
    const Value x = m.Take(t, {.lo = f.lo, .hi = f.hi, .exact = f.slope == 0});
    Value y = x;
    if (f.out_lo <= f.out_hi) y.lo = f.out_lo, y.hi = f.out_hi;
    if (rule.op == std::string_view("Relu")) y.lo = std::max(0.0, x.lo), y.hi = std::max(0.0, x.hi);
    if (rule.op == std::string_view("Sqrt")) y.hi = std::sqrt(std::max(1.0, x.hi));
    if (rule.op == std::string_view("ThresholdedRelu"))
      y.lo = std::min(0.0, x.lo), y.hi = std::max(0.0, x.hi);
    std::vector<std::string> attributes;
    if (rule.op == std::string_view("Gelu") && m.Chance(2))
      attributes.push_back(Str("approximate", "tanh"));
    if (rule.op == std::string_view("LeakyRelu")) attributes.push_back(Float("alpha", 0.25f));
    if (rule.op == std::string_view("Shrink")) attributes.push_back(Float("lambd", 1.5f));
    y.whole = x.whole && f.exact;
    y.error = f.slope * x.error + (f.effort * (IsFloat(t) && !y.whole ? Unit(y) : 0));
    return m.Add(rule.op, {x.name}, y, attributes).has_value();
  }
  return false;
}

bool Negate(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t);
  Value y = x;
  y.lo = -x.hi, y.hi = -x.lo;
  if (rule.op == std::string_view("Abs")) y.lo = 0, y.hi = x.bound();
  return m.Add(rule.op, {x.name}, y).has_value();
}

bool Predicate(Maker& m, const Rule& rule, Elem t) {
  Value y = m.Take(t);
  const std::string x = y.name;
  y.elem = kBool, y.lo = 0, y.hi = 1, y.error = 0, y.whole = true;
  return m.Add(rule.op, {x}, y).has_value();
}

bool BitNot(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t);
  Value y = x;
  if (In(kUnsigned, t)) {
    if (t == kU64) {  // beyond what doubles tell apart: there and back
      const std::string other = m.NewName();
      m.Plain(rule.op, {x.name}, other);
      return m.Add(rule.op, {other}, x).has_value();
    }
    const double most = InfoOf(t).most;
    y.lo = most - x.hi, y.hi = most - x.lo;
  } else {
    y.lo = -x.hi - 1, y.hi = -x.lo - 1;
  }
  return m.Add(rule.op, {x.name}, y).has_value();
}

bool Clip(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t);
  const double lo = In(kUnsigned, t) ? 1 : -3, hi = 5;
  const bool has_lo = !m.Chance(4), has_hi = !has_lo || !m.Chance(4);
  Value y = x;
  if (has_lo) y.lo = std::max(lo, x.lo), y.hi = std::max(lo, x.hi);
  if (has_hi) y.lo = std::min(hi, y.lo), y.hi = std::min(hi, y.hi);
  return m
      .Add(rule.op,
           {x.name, has_lo ? m.Number(t, lo).name : "", has_hi ? m.Number(t, hi).name : ""}, y)
      .has_value();
}

// What the type can hold, from float32, and back.
bool ThereAndBack(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(kF32, {.lo = -4, .hi = 4, .exact = true});
  const std::string cast = m.NewName();
  if (rule.op == std::string_view("CastLike"))
    m.Plain(rule.op, {x.name, m.Take(t).name}, cast);
  else
    m.Plain(rule.op, {x.name}, cast, {Int("to", t)});
  return m.Add("Cast", {cast}, x, {Int("to", kF32)}).has_value();
}

// To any type that has room for the range.
bool Cast(Maker& m, const Rule& rule, Elem t) {
  const bool like = rule.op == std::string_view("CastLike");
  if (t == kF4E2M1) return ThereAndBack(m, rule, t);
  Elem to = kF32;
  do to = kElems[m.Below(std::size(kElems))].elem;
  while (InfoOf(to).since > m.opset() || to == kF4E2M1);
  const bool narrow = !IsFloat(to);
  const double most = InfoOf(to).exact;
  const bool has_signs = !In(kUnsigned | Only(kBool) | Only(kU4) | Only(kU2) | Only(kF8E8M0), to);
  const Value x = m.Take(t, {.lo = has_signs && t != kBool ? -most
                                   : to == kF8E8M0         ? 1
                                                           : 0,
                             .hi = std::min(most, InfoOf(t).most),
                             .exact = narrow});
  Value y = x;
  y.elem = to;
  if (to == kBool) y.lo = 0, y.hi = 1;
  if (IsFloat(to) && !y.whole) y.error += InfoOf(to).unit * std::max(1.0, y.bound());
  if (like) return m.Add(rule.op, {x.name, m.Take(to).name}, y).has_value();
  return m.Add(rule.op, {x.name}, y, {Int("to", to)}).has_value();
}

// Between signed and unsigned of one width, of numbers that both have; of floats, there and back.
bool BitCast(Maker& m, const Rule& rule, Elem t) {
  if (!In(kInts, t)) {
    const int bits = InfoOf(t).dtype.bits;
    const Elem to = bits == 8 ? kU8 : bits == 16 ? kI16 : bits == 32 ? kU32 : kI64;
    const Value x = m.Take(t);
    const std::string other = m.NewName();
    m.Plain(rule.op, {x.name}, other, {Int("to", to)});
    return m.Add(rule.op, {other}, x, {Int("to", t)}).has_value();
  }
  constexpr Elem kPairs[][2] = {{kI8, kU8}, {kI16, kU16}, {kI32, kU32}, {kI64, kU64}};
  for (const auto& [i, u] : kPairs) {
    if (t != i && t != u) continue;
    const Value x = m.Take(t, {.lo = 0, .hi = InfoOf(i).most});
    Value y = x;
    y.elem = t == i ? u : i;
    return m.Add(rule.op, {x.name}, y, {Int("to", y.elem)}).has_value();
  }
  return false;
}

// Ranges and errors of what two operands make.
void Combine(std::string_view op, const Value& x, const Value& y, Value* z) {
  z->error = x.error + y.error;
  z->whole = x.whole && y.whole;
  if (op == "Add" || op == "Sum") z->lo = x.lo + y.lo, z->hi = x.hi + y.hi;
  if (op == "Sub") z->lo = x.lo - y.hi, z->hi = x.hi - y.lo;
  if (op == "Max") z->lo = std::max(x.lo, y.lo), z->hi = std::max(x.hi, y.hi);
  if (op == "Min") z->lo = std::min(x.lo, y.lo), z->hi = std::min(x.hi, y.hi);
  if (op == "Mean") z->lo = std::min(x.lo, y.lo), z->hi = std::max(x.hi, y.hi), z->whole = false;
  if (op == "Mul") {
    const double corners[] = {x.lo * y.lo, x.lo * y.hi, x.hi * y.lo, x.hi * y.hi};
    z->lo = *std::min_element(corners, corners + 4),
    z->hi = *std::max_element(corners, corners + 4);
    z->error = x.error * y.bound() + y.error * x.bound();
  }
  if (IsFloat(z->elem) && !z->whole && op != "Max" && op != "Min") z->error += Unit(*z) * 2;
}

bool Binary(Maker& m, const Rule& rule, Elem t) {
  // Nothing is below 0 of what has no sign.
  const bool falls = In(kUnsigned, t) && rule.op == std::string_view("Sub");
  const Value x = m.Take(t, {.lo = falls ? 3.0 : -1e18}),
              y = m.Against(x, t, {.hi = falls ? 3 : 1e18});
  Value z = x;
  z.dims = *Broadcast(x.dims, y.dims);
  const bool turned = !falls && m.Chance(2);
  Combine(rule.op, turned ? y : x, turned ? x : y, &z);
  const Value& first = turned ? y : x;
  const Value& second = turned ? x : y;
  return m.Add(rule.op, {first.name, second.name}, z).has_value();
}

bool Variadic(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t);
  Value z = x;
  std::vector<std::string> names = {x.name};
  for (size_t n = m.Below(3); n > 0; --n) {
    const Value y = m.Against(z, t);
    Value both = z;
    both.dims = *Broadcast(z.dims, y.dims);
    Combine(rule.op, z, y, &both);
    z = both;
    names.push_back(y.name);
  }
  return m.Add(rule.op, names, z).has_value();
}

bool Divide(Maker& m, const Rule& rule, Elem t) {
  const bool modulo = rule.op == std::string_view("Mod");
  const Value x = m.Take(t, {.exact = modulo || !IsFloat(t)});
  const Value y = m.Against(x, t, {.lo = 1, .hi = 100, .exact = modulo || !IsFloat(t)});
  Value z = x;
  z.dims = *Broadcast(x.dims, y.dims);
  if (modulo) {
    z.hi = y.hi;
    z.lo = x.lo < 0 ? -y.hi : 0;
    // The remainders of the two signs differ where an operand is negative; both are defined.
    const bool fmod = IsFloat(t) || m.Chance(2);
    return m.Add(rule.op, {x.name, y.name}, z, {Int("fmod", fmod)}).has_value();
  }
  z.lo = std::min(0.0, x.lo), z.hi = std::max(0.0, x.hi);
  if (IsFloat(t)) z.whole = false, z.error = x.error + y.error * x.bound() + Unit(z) * 2;
  return m.Add(rule.op, {x.name, y.name}, z).has_value();
}

bool Power(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.lo = IsFloat(t) ? 1.0 : -8, .hi = 8});
  const bool mixed = m.opset() >= 12 && m.Chance(2);
  const Elem other = m.Of<Elem>({kI32, kI64, kU8, kI8, kU16, kI16, kU32, kU64});
  const Value y = m.Against(x, mixed ? other : t, {.lo = 0, .hi = 2});
  Value z = x;
  z.dims = *Broadcast(x.dims, y.dims);
  z.hi = x.bound() * x.bound(), z.lo = IsFloat(t) ? 0 : -x.bound();
  z.hi = std::max(z.hi, 1.0);
  z.whole = x.whole && y.whole;
  if (IsFloat(t)) z.error = 16 * x.error + 140 * y.error + kFunction * Unit(z), z.whole = false;
  return m.Add(rule.op, {x.name, y.name}, z).has_value();
}

bool Shift(Maker& m, const Rule& rule, Elem t) {
  const bool left = m.Chance(2);
  const Value x = m.Take(t, {.hi = left ? InfoOf(t).most / 16 : 1e18});
  const Value y = m.Against(x, t, {.hi = 4});
  Value z = x;
  z.dims = *Broadcast(x.dims, y.dims);
  if (left)
    z.hi = x.hi * 16;
  else
    z.lo = 0;
  return m.Add(rule.op, {x.name, y.name}, z, {Str("direction", left ? "LEFT" : "RIGHT")})
      .has_value();
}

// Of bits or truth values: the next power of two bounds them.
bool Bits(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.hi = t == kU64 || t == kI64 ? 1e9 : 1e18}),
              y = m.Against(x, t, {.hi = t == kU64 || t == kI64 ? 1e9 : 1e18});
  Value z = x;
  z.dims = *Broadcast(x.dims, y.dims);
  double most = 1;
  while (most <= std::max(x.bound(), y.bound())) most *= 2;
  z.hi = std::min(most, InfoOf(t).most);
  z.lo = In(kSigned, t) ? -z.hi : 0;
  return m.Add(rule.op, {x.name, y.name}, z).has_value();
}

bool Compare(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.exact = true}), y = m.Against(x, t, {.exact = true});
  Value z = x;
  z.dims = *Broadcast(x.dims, y.dims);
  z.elem = kBool, z.lo = 0, z.hi = 1;
  return m.Add(rule.op, {x.name, y.name}, z).has_value();
}

bool Select(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t), y = m.Against(x, t);
  Value z = x;
  z.dims = *Broadcast(x.dims, y.dims);
  const Value c = m.Against(z, kBool);
  const std::optional<Dims> dims = Broadcast(z.dims, c.dims);
  if (!dims) return false;
  z.dims = *dims;
  z.lo = std::min(x.lo, y.lo), z.hi = std::max(x.hi, y.hi);
  z.error = std::max(x.error, y.error), z.whole = x.whole && y.whole;
  return m.Add(rule.op, {c.name, x.name, y.name}, z).has_value();
}

bool PRelu(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.lo = -30, .hi = 30, .fixed = true});
  Dims dims(x.dims.begin() + static_cast<long>(m.Below(x.rank() + 1)), x.dims.end());
  for (Size& d : dims) d = m.Chance(3) ? Size(1) : d;
  const Value slope = m.Like(t, dims, {.lo = In(kUnsigned, t) ? 0.0 : -3.0, .hi = 3});
  Value z = x;
  const double most = std::max(1.0, slope.bound()) * x.bound();
  z.lo = In(kUnsigned, t) ? 0 : -most, z.hi = most;
  z.whole = x.whole && slope.whole;
  z.error = x.error * std::max(1.0, slope.bound()) + slope.error * x.bound();
  if (!z.whole) z.error += 2 * Unit(z);
  return m.Add(rule.op, {x.name, slope.name}, z).has_value();
}

bool SwiGlu(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.lo = -8, .hi = 8}), y = m.Like(t, x.dims, {.lo = -8, .hi = 8});
  Value z = x;
  z.lo = -64, z.hi = 64, z.whole = false;
  z.error = 9 * x.error + 8 * y.error + kFunction * Unit(z);
  return m.Add(rule.op, {x.name, y.name}, z).has_value();
}

constexpr Rule kRules[] = {
    {"Relu", 14, kFloats | kSigned, Unary},
    {"Sigmoid", 13, kFloats, Unary},
    {"Tanh", 13, kFloats, Unary},
    {"Exp", 13, kFloats, Unary},
    {"Log", 13, kFloats, Unary},
    {"Sqrt", 13, kFloats, Unary},
    {"Sin", 22, kFloats, Unary},
    {"Cos", 22, kFloats, Unary},
    {"Tan", 22, kFloats, Unary},
    {"Asin", 22, kFloats, Unary},
    {"Acos", 22, kFloats, Unary},
    {"Atan", 22, kFloats, Unary},
    {"Sinh", 22, kFloats, Unary},
    {"Cosh", 22, kFloats, Unary},
    {"Asinh", 22, kFloats, Unary},
    {"Acosh", 22, kFloats, Unary},
    {"Atanh", 22, kFloats, Unary},
    {"Erf", 13, kFloats, Unary},
    {"Floor", 13, kFloats, Unary},
    {"Ceil", 13, kFloats, Unary},
    {"Round", 22, kFloats, Unary},
    {"Reciprocal", 13, kFloats, Unary},
    {"Softplus", 22, kFloats, Unary},
    {"HardSwish", 22, kFloats, Unary},
    {"HardSigmoid", 22, kFloats, Unary},
    {"Elu", 22, kFloats, Unary},
    {"Selu", 22, kFloats, Unary},
    {"Celu", 12, Only(kF32), Unary},
    {"Celu", 28, kFloats & ~Only(kF32), Unary},
    {"LeakyRelu", 16, kFloats, Unary},
    {"Softsign", 22, kFloats, Unary},
    {"Swish", 24, kFloats, Unary},
    {"Mish", 22, kFloats, Unary},
    {"Gelu", 20, kFloats, Unary},
    {"ThresholdedRelu", 22, kFloats, Unary},
    {"Shrink", 13, kIeee | kInts, Unary},
    {"Sign", 13, kNumbers, Unary},
    {"Identity", 13, kAny, Unary},
    {"Dropout", 22, kFloats | kF8, Unary},
    {"Neg", 13, kFloats | kSigned, Negate},
    {"Abs", 13, kNumbers, Negate},
    {"IsNaN", 20, kFloats | kF8, Predicate},
    {"IsInf", 20, kFloats | kF8, Predicate},
    {"Not", 1, Only(kBool), Predicate},
    {"BitwiseNot", 18, kInts, BitNot},
    {"Clip", 13, kNumbers, Clip},
    {"Cast", 13, kAny, Cast},
    {"CastLike", 15, kAny, Cast},
    {"BitCast", 26, kNumbers | kF8, BitCast},
    {"Add", 14, kNumbers, Binary},
    {"Sub", 14, kNumbers, Binary},
    {"Mul", 14, kNumbers, Binary},
    {"Min", 13, kNumbers, Variadic},
    {"Max", 13, kNumbers, Variadic},
    {"Sum", 13, kFloats, Variadic},
    {"Mean", 13, kFloats, Variadic},
    {"Div", 14, kNumbers, Divide},
    {"Mod", 13, kNumbers, Divide},
    {"Pow", 15, kFloats | Only(kI32) | Only(kI64), Power},
    {"BitShift", 11, kUnsigned, Shift},
    {"BitShift", 28, kSigned, Shift},
    {"BitwiseAnd", 18, kInts, Bits},
    {"BitwiseOr", 18, kInts, Bits},
    {"BitwiseXor", 18, kInts, Bits},
    {"And", 7, Only(kBool), Bits},
    {"Or", 7, Only(kBool), Bits},
    {"Xor", 7, Only(kBool), Bits},
    {"Equal", 19, kAll, Compare},
    {"Less", 13, kNumbers, Compare},
    {"Greater", 13, kNumbers, Compare},
    {"LessOrEqual", 16, kNumbers, Compare},
    {"GreaterOrEqual", 16, kNumbers, Compare},
    {"Where", 16, kAll, Select},
    {"PRelu", 16, kFloats | kWide, PRelu},
    {"SwiGLU", 27, kFloats, SwiGlu},
    // As sets before defined them, of the types that they knew.
    {"Relu", 6, kIeee, Unary, "", 13},
    {"Sigmoid", 6, kIeee, Unary, "", 13},
    {"Tanh", 6, kIeee, Unary, "", 13},
    {"Exp", 6, kIeee, Unary, "", 13},
    {"Log", 6, kIeee, Unary, "", 13},
    {"Sqrt", 6, kIeee, Unary, "", 13},
    {"Floor", 6, kIeee, Unary, "", 13},
    {"Ceil", 6, kIeee, Unary, "", 13},
    {"Reciprocal", 6, kIeee, Unary, "", 13},
    {"LeakyRelu", 6, kIeee, Unary, "", 16},
    {"Elu", 6, kIeee, Unary, "", 22},
    {"Selu", 6, kIeee, Unary, "", 22},
    {"HardSigmoid", 6, kIeee, Unary, "", 22},
    {"Softplus", 1, kIeee, Unary, "", 22},
    {"Softsign", 1, kIeee, Unary, "", 22},
    {"Sin", 7, kIeee, Unary, "", 22},
    {"Cos", 7, kIeee, Unary, "", 22},
    {"Tan", 7, kIeee, Unary, "", 22},
    {"Asin", 7, kIeee, Unary, "", 22},
    {"Acos", 7, kIeee, Unary, "", 22},
    {"Atan", 7, kIeee, Unary, "", 22},
    {"Sinh", 9, kIeee, Unary, "", 22},
    {"Cosh", 9, kIeee, Unary, "", 22},
    {"Asinh", 9, kIeee, Unary, "", 22},
    {"Acosh", 9, kIeee, Unary, "", 22},
    {"Atanh", 9, kIeee, Unary, "", 22},
    {"Erf", 9, kIeee, Unary, "", 13},
    {"Sign", 9, kOldNumbers | kInts, Unary, "", 13},
    {"Shrink", 9, kIeee | kInts, Unary, "", 13},
    {"Identity", 1, kOldAll, Unary, "", 13},
    {"Dropout", 7, kIeee, Unary, "", 12},
    {"Round", 11, kIeee, Unary, "", 22},
    {"ThresholdedRelu", 10, kIeee, Unary, "", 22},
    {"HardSwish", 14, kIeee, Unary, "", 22},
    {"Mish", 18, kIeee, Unary, "", 22},
    {"Neg", 6, kIeee | kSigned, Negate, "", 13},
    {"Abs", 6, kIeee | kInts, Negate, "", 13},
    {"IsNaN", 9, kIeee, Predicate, "", 13},
    {"IsInf", 10, Only(kF32) | Only(kF64), Predicate, "", 20},
    {"Clip", 12, kIeee | kInts, Clip, "", 13},
    {"Cast", 9, kOldAll, Cast, "", 13},
    {"Add", 7, kOldNumbers, Binary, "", 13},
    {"Sub", 7, kOldNumbers, Binary, "", 13},
    {"Mul", 7, kOldNumbers, Binary, "", 13},
    {"Min", 8, kIeee, Variadic, "", 12},
    {"Max", 8, kIeee, Variadic, "", 12},
    {"Sum", 8, kIeee, Variadic, "", 13},
    {"Mean", 8, kIeee, Variadic, "", 13},
    {"Div", 7, kOldNumbers, Divide, "", 13},
    {"Mod", 10, kIeee | kInts, Divide, "", 13},
    {"Pow", 7, kIeee, Power, "", 12},
    {"Equal", 7, Only(kBool) | Only(kI32) | Only(kI64), Compare, "", 11},
    {"Equal", 11, kOldAll, Compare, "", 19},
    {"Less", 9, kIeee | kInts, Compare, "", 13},
    {"Greater", 9, kIeee | kInts, Compare, "", 13},
    {"LessOrEqual", 12, kIeee | kInts, Compare, "", 16},
    {"GreaterOrEqual", 12, kIeee | kInts, Compare, "", 16},
    {"Where", 9, kOldAll, Select, "", 16},
    {"PRelu", 9, kOldNumbers, PRelu, "", 16},
};

}  // namespace

std::span<const Rule> ElementwiseRules() { return kRules; }

}  // namespace tenon::fuzz
