// The exponential family: exp, exp2, log, log2, tanh, erf, sigmoid; and in f64, as they are rare,
// exp10, expm1, log10, log1p and the other hyperbolic functions with their inverses.
//
// Every function here is computed in three steps: the argument is brought into a short range where
// a polynomial is exact to the last bit or two, the polynomial is evaluated, and the result is
// scaled back. The ways in and out are exact or nearly so, so that the error is the polynomial's.
//
//   exp, exp2      x = n ln2 + r with |r| <= ln2 / 2, by adding a number so large that the sum has
//                  no bits below one (it rounds, and its lowest bits are the integer n); ln2 is
//                  subtracted in two parts (Cody and Waite), so that r keeps its bits. e^r - 1 is a
//                  polynomial, and 2^n is made by shifting n into the exponent's bits.
//   log, log2      x = 2^e (1 + f) with 1 + f around 1, by integer arithmetic on the bits;
//                  t = f / (2 + f) turns log(1 + f) into an odd series in t.
//   tanh, erf,     ratios and sums of these, each with a form of its own near 0, where the
//   sigmoid        difference of two near-equal numbers would lose bits.
//
// In loop IR, exp(x) of f32 with FMA begins, x clamped to where the result is neither 0 nor
// infinite,
//
//   n = fma(x, 1.442695f32, 12583166f32) - 12583166f32
//   r = fma(n, 2.9088971e-05f32, fma(n, -0.69317627f32, x))
//
// Where the argument is known to lie where the result is a normal number, the two ends and half of
// the scaling are left out (WeightOf in ops/operand.h says so of a softmax's).
//
// Special values need no branches: they are selects at the end, or fall out of the arithmetic. The
// coefficients are in coefficients.h, with how they were found.

#include <cmath>
#include <limits>

#include "loop/pass/math/coefficients.h"
#include "loop/pass/math/forms.h"

namespace tenon::math {

static constexpr double kLog2E = 1.4426950408889634;
static constexpr double kLn2 = 0.6931471805599453;
static constexpr double kInfinity = std::numeric_limits<double>::infinity();
static constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Expr Builder::Fma(Expr a, Expr b, Expr c) const {
  if (has_fma_) return Call::Make(Intrinsic::kFma, {std::move(a), std::move(b), std::move(c)});
  return std::move(a) * std::move(b) + std::move(c);
}

Expr Builder::Polynomial(const double* c, size_t n, const Expr& x) const {
  Expr sum = C(c[n - 1]);
  for (size_t i = n - 1; i-- > 0;) sum = Fma(sum, x, C(c[i]));
  return sum;
}

namespace {

// x = n ln2 + r. `biased` is the float whose lowest bits hold n + bias as an integer: adding 1.5 ·
// 2^(mantissa bits) leaves no bit below the unit, which rounds to nearest.
struct Reduced {
  Expr biased, n, r;
};

double Magic(const Builder& b, int bias) { return std::ldexp(1.5, b.mantissa_bits()) + bias; }

Reduced ReduceExp(const Builder& b, const Expr& x, int bias) {
  const double magic = Magic(b, bias);
  const double* ln2 = b.wide() ? kLn2Parts64 : kLn2Parts32;
  Reduced out;
  out.biased = b.Fma(x, b.C(kLog2E), b.C(magic));
  out.n = out.biased - b.C(magic);
  out.r = b.Fma(out.n, b.C(-ln2[1]), b.Fma(out.n, b.C(-ln2[0]), x));
  return out;
}

// e^r - 1.
Expr ExpMinus1(const Builder& b, const Expr& r) {
  Expr tail = b.wide() ? b.Polynomial(kExpTail64, r) : b.Polynomial(kExpTail32, r);
  return b.Fma(r * r, tail, r);
}

// value · 2^n for every n whose result may be anything from 0 to infinity; `biased` holds n + 2 ·
// bias. The factor is applied as two halves, since its exponent may not fit; only the second
// product rounds.
Expr Scale(const Builder& b, const Expr& value, const Expr& biased) {
  Expr i = b.UBits(biased);
  Expr half = Binary::Make(BinaryOp::kShr, i, MakeIntConst(b.UIntType(), 1));
  Expr shift = MakeIntConst(b.UIntType(), b.mantissa_bits());
  Expr first = b.FromBits(Binary::Make(BinaryOp::kShl, half, shift));
  Expr second = b.FromBits(Binary::Make(BinaryOp::kShl, i - half, shift));
  return value * first * second;
}

// 2^k, `biased` holding k + bias with 0 < k + bias < 2 bias.
Expr PowerOf2(const Builder& b, const Expr& biased) {
  Expr shift = MakeIntConst(b.UIntType(), b.mantissa_bits());
  return b.FromBits(Binary::Make(BinaryOp::kShl, b.UBits(biased), shift));
}

// e^x for x <= 0: cheaper, as the exponent cannot overflow; it is kept up by a constant until the
// last product.
Expr ExpNonPositive(const Builder& b, const Expr& x) {
  const int up = b.wide() ? 512 : 64;
  Reduced e = ReduceExp(b, b.AtLeast(x, b.wide() ? -746.0 : -104.0), b.exponent_bias() + up);
  Expr p = ExpMinus1(b, e.r) + b.C(1);
  return p * PowerOf2(b, e.biased) * b.C(std::ldexp(1.0, -up));
}

// x = 2^e · (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2), for x > 0; e as a float.
struct Split {
  Expr e, f;
};

Split SplitExponent(const Builder& b, const Expr& x) {
  const int bits = b.mantissa_bits();
  const double least_normal = std::ldexp(1.0, 1 - b.exponent_bias());
  Expr denormal = Lt(x, b.C(least_normal));
  Expr i = b.Bits(Select::Make(denormal, x * b.C(std::ldexp(1.0, bits)), x));
  const int64_t root_half = b.wide() ? 0x3FE6A09E667F3BCD : 0x3F3504F3;
  Expr shift = b.I(bits);
  Expr e = Binary::Make(BinaryOp::kShr, i - b.I(root_half), shift);
  Expr m = b.FromBits(i - Binary::Make(BinaryOp::kShl, e, shift));
  Expr shown = CastExpr::Make(b.type(), e);
  return {shown - Select::Make(denormal, b.C(bits), b.C(0)), m - b.C(1)};
}

// What a logarithm is outside the positive numbers, and at infinity.
Expr LogSpecials(const Builder& b, const Expr& x, Expr inside) {
  Expr not_positive = Select::Make(Eq(x, b.C(0)), b.C(-kInfinity), b.C(kNan));
  Expr finite = Select::Make(Gt(x, b.C(0)), std::move(inside), not_positive);
  return Select::Make(Eq(x, b.C(kInfinity)), x, finite);
}

// log(1 + f) and log2(1 + f) with e · log 2 and e added, by way of t = f / (2 + f): 1 + f = (1 + t)
// / (1 - t).
Expr LogSum64(const Builder& b, const Split& s) {
  Expr t = s.f / (s.f + b.C(2));
  Expr u = t * t;
  Expr tail = b.Fma(t * u, b.Polynomial(kLogTail64, u), s.e * b.C(kLn2Parts64[1]));
  return b.Fma(s.e, b.C(kLn2Parts64[0]), b.Fma(t, b.C(2), tail));
}

Expr Log2Sum64(const Builder& b, const Split& s) {
  Expr t = s.f / (s.f + b.C(2));
  Expr u = t * t;
  Expr natural = b.Fma(t * u, b.Polynomial(kLogTail64, u), t * b.C(2));
  return b.Fma(natural, b.C(kLog2E), s.e);
}

// Where a function comes close to ±1, rounding must not carry it beyond.
Expr WithinOne(const Builder& b, const Expr& x) { return b.AtMost(b.AtLeast(x, -1), 1); }

}  // namespace

Expr Exp(const Builder& b, const Expr& x, Bounds bounds) {
  // Arguments of results that 2^n reaches in one step: n and 2^n are those of normal numbers.
  const double least = b.wide() ? -708.3964 : -87.33654, most = b.wide() ? 709.4 : 88.3;
  if (bounds.least >= least && bounds.most <= most) {
    Reduced e = ReduceExp(b, x, b.exponent_bias());
    return (ExpMinus1(b, e.r) + b.C(1)) * PowerOf2(b, e.biased);
  }
  if (bounds.most <= 0) return ExpNonPositive(b, x);
  // Beyond these the result is infinity and 0.
  Expr clamped = b.AtMost(b.AtLeast(x, b.wide() ? -746.0 : -104.0), b.wide() ? 710.0 : 89.0);
  Reduced e = ReduceExp(b, clamped, 2 * b.exponent_bias());
  return Scale(b, ExpMinus1(b, e.r) + b.C(1), e.biased);
}

Expr Exp2(const Builder& b, const Expr& x) {
  Expr clamped = b.AtMost(b.AtLeast(x, b.wide() ? -1076.0 : -151.0), b.wide() ? 1025.0 : 129.0);
  const double magic = Magic(b, 2 * b.exponent_bias());
  Expr biased = clamped + b.C(magic);
  Expr r = clamped - (biased - b.C(magic));
  Expr p = b.wide() ? ExpMinus1(b, r * b.C(kLn2)) + b.C(1)
                    : b.Fma(r, b.Polynomial(kExp2Tail32, r), b.C(1));
  return Scale(b, p, biased);
}

Expr Log(const Builder& b, const Expr& x) {
  Split s = SplitExponent(b, x);
  if (b.wide()) return LogSpecials(b, x, LogSum64(b, s));
  Expr f2 = s.f * s.f;
  Expr tail = b.Fma(f2 * s.f, b.Polynomial(kLogTail32, s.f), s.e * b.C(kLn2Parts32[1]));
  Expr small = s.f + b.Fma(f2, b.C(-0.5), tail);
  return LogSpecials(b, x, b.Fma(s.e, b.C(kLn2Parts32[0]), small));
}

Expr Log2(const Builder& b, const Expr& x) {
  Split s = SplitExponent(b, x);
  if (b.wide()) return LogSpecials(b, x, Log2Sum64(b, s));
  return LogSpecials(b, x, b.Fma(s.f, b.Polynomial(kLog2Over32, s.f), s.e));
}

Expr Tanh(const Builder& b, const Expr& x) {
  if (!b.wide()) {
    Expr t = b.AtMost(b.AtLeast(x, -9.02), 9.02);
    Expr u = t * t;
    return WithinOne(b, t * b.Polynomial(kTanhP32, u) / b.Polynomial(kTanhQ32, u));
  }
  // With m = e^(-2|x|) - 1: tanh |x| = -m / (m + 2).
  Expr magnitude = b.Abs(x);
  Reduced e = ReduceExp(b, b.AtLeast(magnitude * b.C(-2), -40.0), b.exponent_bias());
  Expr power = PowerOf2(b, e.biased);
  Expr m = b.Fma(ExpMinus1(b, e.r), power, power - b.C(1));
  Expr value = m / (m + b.C(2));
  return UnlessTiny(b, x, 0x1p-28, Select::Make(Lt(x, b.C(0)), value, -value));
}

Expr Erf(const Builder& b, const Expr& x) {
  if (!b.wide()) {
    Expr t = b.AtMost(b.AtLeast(x, -3.93), 3.93);
    Expr u = t * t;
    return WithinOne(b, t * b.Polynomial(kErfP32, u) / b.Polynomial(kErfQ32, u));
  }
  Expr u = x * x;
  Expr near = x * b.Polynomial(kErfP64, u) / b.Polynomial(kErfQ64, u);
  Expr t = b.AtMost(b.Abs(x), 6.0);
  Expr rest = ExpNonPositive(b, t * -t) * b.Polynomial(kErfcP64, t) / b.Polynomial(kErfcQ64, t);
  Expr far = b.C(1) - rest;
  return Select::Make(Lt(t, b.C(1)), near, Select::Make(Lt(x, b.C(0)), -far, far));
}

// With z = e^-|x|: 1 / (1 + z) for x >= 0 and z / (1 + z) below, which keeps small results exact.
Expr Sigmoid(const Builder& b, const Expr& x) {
  Expr z = ExpNonPositive(b, -b.Abs(x));
  return Select::Make(Lt(x, b.C(0)), z, b.C(1)) / (z + b.C(1));
}

namespace {

// Computes in f64 with what `form` makes of the argument there.
template <class F>
Expr InF64(const Builder& given, const Expr& x, const F& form) {
  const Builder b = Wide(given);
  return CastExpr::Make(given.type(), form(b, CastExpr::Make(b.type(), x)));
}

// (e^x - 1) / 4 for -40 <= x <= 710.6: the quarter keeps e^x from overflowing where half of it does
// not.
Expr QuarterExpMinus1(const Builder& b, const Expr& x) {
  Reduced e = ReduceExp(b, x, b.exponent_bias() - 2);
  Expr power = PowerOf2(b, e.biased);
  return b.Fma(ExpMinus1(b, e.r), power, power - b.C(0.25));
}

// log(1 + x): of the rounded sum, with what rounding lost put back.
Expr Log1pWide(const Builder& b, const Expr& x) {
  Expr sum = x + b.C(1);
  Expr lost = Select::Make(Gt(x, b.C(1)), b.C(1) - (sum - x), x - (sum - b.C(1)));
  Expr value = LogSum64(b, SplitExponent(b, sum)) + lost / sum;
  return UnlessTiny(b, x, 0x1p-54, LogSpecials(b, sum, value));
}

}  // namespace

Expr Expm1(const Builder& given, const Expr& x) {
  return InF64(given, x, [](const Builder& b, const Expr& v) {
    Expr quarter = QuarterExpMinus1(b, b.AtMost(b.AtLeast(v, -40.0), 710.0));
    return UnlessTiny(b, v, 0x1p-54, quarter * b.C(2) * b.C(2));
  });
}

Expr Exp10(const Builder& given, const Expr& x) {
  return InF64(given, x, [](const Builder& b, const Expr& given_v) {
    constexpr double kLog2Of10 = 3.321928094887362, kLnOf10 = 2.302585092994046;
    Expr v = b.AtMost(b.AtLeast(given_v, -325.0), 309.0);
    Expr biased = b.Fma(v, b.C(kLog2Of10), b.C(Magic(b, 2 * b.exponent_bias())));
    Expr n = biased - b.C(Magic(b, 2 * b.exponent_bias()));
    Expr r = b.Fma(n, b.C(-kLog10Of2Parts[1]), b.Fma(n, b.C(-kLog10Of2Parts[0]), v));
    return Scale(b, ExpMinus1(b, r * b.C(kLnOf10)) + b.C(1), biased);
  });
}

Expr Log1p(const Builder& given, const Expr& x) { return InF64(given, x, Log1pWide); }

Expr Log10(const Builder& given, const Expr& x) {
  return InF64(given, x, [](const Builder& b, const Expr& v) {
    constexpr double kLog10OfE = 0.4342944819032518;
    Split s = SplitExponent(b, v);
    Expr t = s.f / (s.f + b.C(2));
    Expr u = t * t;
    Expr natural = b.Fma(t * u, b.Polynomial(kLogTail64, u), t * b.C(2));
    Expr small = b.Fma(natural, b.C(kLog10OfE), s.e * b.C(kLog10Of2Parts[1]));
    return LogSpecials(b, v, b.Fma(s.e, b.C(kLog10Of2Parts[0]), small));
  });
}

// With m = e^|x| - 1: (m + m / (m + 1)) / 2.
Expr Sinh(const Builder& given, const Expr& x) {
  return InF64(given, x, [](const Builder& b, const Expr& v) {
    Expr quarter = QuarterExpMinus1(b, b.AtMost(b.Abs(v), 710.6));
    Expr size = (quarter + quarter / b.Fma(quarter, b.C(4), b.C(1))) * b.C(2);
    return UnlessTiny(b, v, 0x1p-28, Select::Make(Lt(v, b.C(0)), -size, size));
  });
}

Expr Cosh(const Builder& given, const Expr& x) {
  return InF64(given, x, [](const Builder& b, const Expr& v) {
    Expr quarter = QuarterExpMinus1(b, b.AtMost(b.Abs(v), 710.6)) + b.C(0.25);
    return quarter * b.C(2) + b.C(0.125) / quarter;
  });
}

// log(a + sqrt(a^2 + 1)); from 2^60 on log(2 a).
Expr Asinh(const Builder& given, const Expr& x) {
  return InF64(given, x, [](const Builder& b, const Expr& v) {
    Expr a = b.Abs(v);
    Expr square = a * a;
    Expr large = Gt(a, b.C(0x1p60));
    Expr argument = a + square / (b.Sqrt(square + b.C(1)) + b.C(1));
    Expr value =
        Log1pWide(b, Select::Make(large, a, argument)) + Select::Make(large, b.C(kLn2), b.C(0));
    return UnlessTiny(b, v, 0x1p-28, Select::Make(Lt(v, b.C(0)), -value, value));
  });
}

// log(x + sqrt(x^2 - 1)), in terms of t = x - 1; from 2^60 on log(2 x).
Expr Acosh(const Builder& given, const Expr& x) {
  return InF64(given, x, [](const Builder& b, const Expr& v) {
    Expr t = v - b.C(1);
    Expr large = Gt(v, b.C(0x1p60));
    Expr argument = t + b.Sqrt(t * (t + b.C(2)));
    Expr value =
        Log1pWide(b, Select::Make(large, t, argument)) + Select::Make(large, b.C(kLn2), b.C(0));
    return Select::Make(Lt(v, b.C(1)), b.C(kNan), value);
  });
}

Expr Atanh(const Builder& given, const Expr& x) {
  return InF64(given, x, [](const Builder& b, const Expr& v) {
    Expr a = b.Abs(v);
    Expr value = Log1pWide(b, a * b.C(2) / (b.C(1) - a)) * b.C(0.5);
    return UnlessTiny(b, v, 0x1p-28, Select::Make(Lt(v, b.C(0)), -value, value));
  });
}

}  // namespace tenon::math
