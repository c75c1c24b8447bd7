// pow, sin, cos, tan. All compute in f64: they are rare, and f64 makes f32 results right with
// simple forms.
#include <limits>

#include "loop/pass/math_coefficients.h"
#include "loop/pass/math_forms.h"

namespace tenon::math {

namespace {

static constexpr double kHalfPi = 1.5707963267948966;
static constexpr double kInfinity = std::numeric_limits<double>::infinity();

Builder Wide(const Builder& b) {
  return Builder(DType::Float(64).WithLanes(b.type().lanes), b.has_fma());
}

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

Expr Sin(const Builder& b, const Expr& x) { return CastExpr::Make(b.type(), Both(b, x).sin); }

Expr Cos(const Builder& b, const Expr& x) { return CastExpr::Make(b.type(), Both(b, x).cos); }

Expr Tan(const Builder& b, const Expr& x) {
  SinCos s = Both(b, x);
  return CastExpr::Make(b.type(), s.sin / s.cos);
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
  Expr negative = Lt(b.Bits(x), b.I(0));
  Expr with_sign = Select::Make(And(negative, odd), -power, power);
  Expr undefined = And(Lt(x, b.C(0)), And(Not(whole), Lt(base, b.C(kInfinity))));
  Expr value = Select::Make(undefined, b.C(std::numeric_limits<double>::quiet_NaN()), with_sign);
  return CastExpr::Make(given.type(), Select::Make(is_one, b.C(1), value));
}

}  // namespace tenon::math
