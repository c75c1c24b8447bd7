// pow, sin, cos, tan, their inverses, and hypot. All compute in f64: they are rare, and f64 makes
// f32 results right with simple forms.
#include <cmath>
#include <limits>

#include "loop/pass/math/coefficients.h"
#include "loop/pass/math/forms.h"

namespace tenon::math {

namespace {

constexpr double kHalfPi = 1.5707963267948966;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// An angle as quadrant · pi/2 + r with |r| <= pi/4. `quadrant` is an integer modulo 4 in the lowest
// bits of an i64.
struct Angle {
  Expr quadrant, r;
};

Expr Quadrant(const Builder& b, const Expr& whole) { return b.Bits(whole + b.C(0x1.8p52)); }

// Any f32, after Payne and Hanek, "Radian reduction for trigonometric functions" (1983): x · 2/pi
// modulo 4, in pieces that are exact, of which whole turns are dropped. The sum is kept as hi + lo.
Angle ReduceF32(const Builder& b, const Expr& x) {
  constexpr size_t kPieces = 7;  // 196 bits: 128 for the largest x, and 60 behind the point
  Expr hi, lo = b.C(0);
  for (size_t k = 0; k < kPieces; ++k) {
    Expr t = x * b.C(kTwoOverPi[k]);
    t = t - b.RoundEven(t * b.C(0.25)) * b.C(4);
    if (!hi) {
      hi = t;
      continue;
    }
    Expr sum = hi + t;
    Expr part = sum - hi;
    lo = lo + ((hi - (sum - part)) + (t - part));
    hi = sum;
  }
  Expr whole = b.RoundEven(hi);
  Expr turn = (hi - whole) + lo;
  return {Quadrant(b, whole), turn * b.C(kHalfPi)};
}

// f64 up to 2^20: pi/2 in three parts, of which the first two times the quadrant are exact.
Angle ReduceF64(const Builder& b, const Expr& x) {
  Expr whole = b.RoundEven(x * b.C(1 / kHalfPi));
  Expr r = b.Fma(whole, b.C(-kHalfPiParts[1]), b.Fma(whole, b.C(-kHalfPiParts[0]), x));
  return {Quadrant(b, whole), b.Fma(whole, b.C(-kHalfPiParts[2]), r)};
}

struct SinCos {
  Expr sin, cos;
};

SinCos OfReduced(const Builder& b, const Expr& r) {
  Expr u = r * r;
  SinCos out;
  out.sin = b.Fma(r * u, b.Polynomial(kSinTail, u), r);
  out.cos = b.Fma(u * u, b.Polynomial(kCosTail, u), b.Fma(u, b.C(-0.5), b.C(1)));
  return out;
}

Expr HasBit(const Builder& b, const Expr& i, int64_t bit) {
  return Ne(Binary::Make(BinaryOp::kBitAnd, i, b.I(bit)), b.I(0));
}

SinCos Both(const Builder& given, const Expr& x) {
  const Builder b = Wide(given);
  Angle a = given.wide() ? ReduceF64(b, x) : ReduceF32(b, CastExpr::Make(b.type(), x));
  SinCos s = OfReduced(b, a.r);
  Expr odd = HasBit(b, a.quadrant, 1);
  Expr sin = Select::Make(odd, s.cos, s.sin);
  Expr cos = Select::Make(odd, s.sin, s.cos);
  Expr flips_sin = HasBit(b, a.quadrant, 2);
  Expr flips_cos = HasBit(b, a.quadrant + b.I(1), 2);
  return {Select::Make(flips_sin, -sin, sin), Select::Make(flips_cos, -cos, cos)};
}

}  // namespace

Expr Sin(const Builder& b, const Expr& x) {
  return UnlessTiny(b, x, 0x1p-27, CastExpr::Make(b.type(), Both(b, x).sin));
}

Expr Cos(const Builder& b, const Expr& x) { return CastExpr::Make(b.type(), Both(b, x).cos); }

Expr Tan(const Builder& b, const Expr& x) {
  SinCos s = Both(b, x);
  return UnlessTiny(b, x, 0x1p-27, CastExpr::Make(b.type(), s.sin / s.cos));
}

namespace {

Expr IsNegative(const Builder& b, const Expr& x) { return Lt(b.Bits(x), b.I(0)); }

Expr BothAre(const Builder& b, const Expr& x, const Expr& y, double value) {
  return And(Eq(x, b.C(value)), Eq(y, b.C(value)));
}

// The angle of the point (x, y) with 0 <= y and 0 <= x: the one of t = least / largest, which is
// 0..1, or a right angle less it. Above tan(pi/8) it is pi/4 and the angle of (t - 1) / (t + 1).
Expr FirstQuadrant(const Builder& b, const Expr& y, const Expr& x) {
  constexpr double kBehindHalfPi = 6.123233995736766e-17;  // pi/2 less kHalfPi
  Expr swaps = Gt(y, x);
  Expr least = Select::Make(swaps, x, y), most = Select::Make(swaps, y, x);
  Expr t = Select::Make(BothAre(b, least, most, 0), b.C(0), least / most);
  t = Select::Make(BothAre(b, least, most, kInfinity), b.C(1), t);
  Expr upper = Gt(t, b.C(0.4142135623730950));
  Expr reduced = Select::Make(upper, (t - b.C(1)) / (t + b.C(1)), t);
  Expr u = reduced * reduced;
  Expr angle = b.Fma(reduced * u, b.Polynomial(kAtanTail, u), reduced);
  Expr eighths =
      Select::Make(swaps, Select::Make(upper, b.C(1), b.C(2)), Select::Make(upper, b.C(1), b.C(0)));
  Expr rest = b.Fma(eighths, b.C(kBehindHalfPi / 2), Select::Make(swaps, -angle, angle));
  return b.Fma(eighths, b.C(kHalfPi / 2), rest);
}

Expr Atan2Wide(const Builder& b, const Expr& y, const Expr& x) {
  constexpr double kBehindPi = 1.2246467991473532e-16;
  Expr right = FirstQuadrant(b, b.Abs(y), b.Abs(x));
  Expr angle = Select::Make(IsNegative(b, x), b.C(2 * kHalfPi) - (right - b.C(kBehindPi)), right);
  return Select::Make(IsNegative(b, y), -angle, angle);
}

}  // namespace

Expr Atan2(const Builder& given, const Expr& y, const Expr& x) {
  const Builder b = Wide(given);
  return CastExpr::Make(given.type(),
                        Atan2Wide(b, CastExpr::Make(b.type(), y), CastExpr::Make(b.type(), x)));
}

Expr Atan(const Builder& given, const Expr& x) {
  const Builder b = Wide(given);
  return CastExpr::Make(given.type(), Atan2Wide(b, CastExpr::Make(b.type(), x), b.C(1)));
}

// By the other leg of the triangle.
Expr Asin(const Builder& given, const Expr& given_x) {
  const Builder b = Wide(given);
  Expr x = CastExpr::Make(b.type(), given_x);
  Expr leg = b.Sqrt((b.C(1) - x) * (b.C(1) + x));
  return CastExpr::Make(given.type(), Atan2Wide(b, x, leg));
}

// Twice the half angle, which is exact near 1.
Expr Acos(const Builder& given, const Expr& given_x) {
  const Builder b = Wide(given);
  Expr x = CastExpr::Make(b.type(), given_x);
  Expr half = Atan2Wide(b, b.Sqrt(b.C(1) - x), b.Sqrt(b.C(1) + x));
  return CastExpr::Make(given.type(), half * b.C(2));
}

Expr Hypot(const Builder& given, const Expr& given_x, const Expr& given_y) {
  const Builder b = Wide(given);
  Expr x = b.Abs(CastExpr::Make(b.type(), given_x));
  Expr y = b.Abs(CastExpr::Make(b.type(), given_y));
  Expr length;
  if (given.wide()) {
    Expr swaps = Gt(y, x);
    Expr least = Select::Make(swaps, x, y), most = Select::Make(swaps, y, x);
    Expr t = least / most;
    length = Select::Make(BothAre(b, least, most, 0), b.C(0), most * b.Sqrt(b.Fma(t, t, b.C(1))));
  } else {
    length = b.Sqrt(b.Fma(x, x, y * y));  // squares of f32 do not overflow in f64
  }
  // An infinity wins over NaN.
  Expr infinite = Or(Eq(x, b.C(kInfinity)), Eq(y, b.C(kInfinity)));
  return CastExpr::Make(given.type(), Select::Make(infinite, b.C(kInfinity), length));
}

// Long division in f64, 29 bits of the quotient a step: each of its products and differences is
// exact there, and the quotient of two f32 has 277 bits.
Expr Remainder(const Builder& given, const Expr& given_x, const Expr& given_y) {
  constexpr int kStep = 29, kSteps = 10;
  const Builder b = Wide(given);
  Expr x = CastExpr::Make(b.type(), given_x);
  Expr size = b.Abs(x), divisor = b.Abs(CastExpr::Make(b.type(), given_y));
  Expr rest = size;
  for (int k = kSteps - 1; k >= 0; --k) {
    Expr unit = divisor * b.C(std::ldexp(1.0, kStep * k));
    rest = rest - Call::Make(Intrinsic::kTrunc, {rest / unit}) * unit;
    rest = Select::Make(Lt(rest, b.C(0)), rest + unit, rest);  // a quotient that was rounded up
  }
  Expr whole = And(Eq(divisor, b.C(kInfinity)), Lt(size, b.C(kInfinity)));
  Expr bits = b.Bits(Select::Make(whole, size, rest));
  Expr sign = Binary::Make(BinaryOp::kBitAnd, b.Bits(x), b.I(std::numeric_limits<int64_t>::min()));
  Expr value = b.FromBits(Binary::Make(BinaryOp::kBitOr, bits, sign));
  return CastExpr::Make(given.type(), value);
}

// |x|^y = 2^(y log2 |x|); then what C says about signs, ones and zero exponents.
Expr Pow(const Builder& given, const Expr& given_x, const Expr& given_y) {
  const Builder b = Wide(given);
  Expr x = CastExpr::Make(b.type(), given_x);
  Expr y = CastExpr::Make(b.type(), given_y);
  Expr base = b.Abs(x);
  Expr power = Exp2(b, y * Log2(b, base));
  Expr is_one =
      Or(Eq(y, b.C(0)), Or(Eq(x, b.C(1)), And(Eq(x, b.C(-1)), Eq(b.Abs(y), b.C(kInfinity)))));
  Expr whole = Eq(b.RoundEven(y), y);
  Expr half = y * b.C(0.5);
  Expr odd = And(whole, Ne(b.RoundEven(half), half));
  // The sign bit counts, so that -0 to an odd power keeps it.
  Expr with_sign = Select::Make(And(IsNegative(b, x), odd), -power, power);
  Expr undefined = And(Lt(x, b.C(0)), And(Not(whole), Lt(base, b.C(kInfinity))));
  Expr value = Select::Make(undefined, b.C(std::numeric_limits<double>::quiet_NaN()), with_sign);
  return CastExpr::Make(given.type(), Select::Make(is_one, b.C(1), value));
}

}  // namespace tenon::math
