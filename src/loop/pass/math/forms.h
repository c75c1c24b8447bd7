// The forms behind expand_math, and the little language they are written in.
#pragma once

#include <limits>

#include "ir/expr.h"

namespace tenon::math {

/// Builds expressions of one float type (f32 or f64) on a number of lanes.
class Builder {
 public:
  Builder(DType type, bool has_fma) : type_(type), has_fma_(has_fma) {}

  DType type() const { return type_; }
  bool wide() const { return type_.bits == 64; }
  int mantissa_bits() const { return wide() ? 52 : 23; }
  int exponent_bias() const { return wide() ? 1023 : 127; }
  bool has_fma() const { return has_fma_; }

  Expr C(double value) const { return MakeConst(type_, value); }
  /// An integer constant with as many bits as the type.
  Expr I(int64_t value) const { return MakeIntConst(IntType(), value); }
  DType IntType() const { return DType::Int(type_.bits).WithLanes(type_.lanes); }
  DType UIntType() const { return DType::UInt(type_.bits).WithLanes(type_.lanes); }

  Expr Bits(Expr x) const { return Call::Make(Intrinsic::kReinterpret, {std::move(x)}, IntType()); }
  Expr UBits(Expr x) const {
    return Call::Make(Intrinsic::kReinterpret, {std::move(x)}, UIntType());
  }
  Expr FromBits(Expr x) const { return Call::Make(Intrinsic::kReinterpret, {std::move(x)}, type_); }

  /// a * b + c, rounded once where that is cheap.
  Expr Fma(Expr a, Expr b, Expr c) const;
  /// c[0] + c[1] x + … + c[n-1] x^(n-1).
  Expr Polynomial(const double* c, size_t n, const Expr& x) const;
  template <size_t n>
  Expr Polynomial(const double (&c)[n], const Expr& x) const {
    return Polynomial(c, n, x);
  }
  Expr Abs(Expr x) const { return Call::Make(Intrinsic::kAbs, {std::move(x)}); }
  Expr Sqrt(Expr x) const { return Call::Make(Intrinsic::kSqrt, {std::move(x)}); }
  Expr RoundEven(Expr x) const { return Call::Make(Intrinsic::kRoundEven, {std::move(x)}); }
  /// x, but at least lo / at most hi; NaN stays NaN (Min and Max would drop it). One instruction
  /// each on x86.
  Expr AtLeast(const Expr& x, double lo) const { return Select::Make(Gt(C(lo), x), C(lo), x); }
  Expr AtMost(const Expr& x, double hi) const { return Select::Make(Lt(C(hi), x), C(hi), x); }

 private:
  DType type_;
  bool has_fma_;
};

/// The same for f64, whatever the type.
inline Builder Wide(const Builder& b) {
  return Builder(DType::Float(64).WithLanes(b.type().lanes), b.has_fma());
}

/// x where it is so small that f(x) rounds to it, which also keeps the sign of 0.
inline Expr UnlessTiny(const Builder& b, const Expr& x, double tiny, const Expr& value) {
  return Select::Make(Lt(b.Abs(x), b.C(tiny)), x, value);
}

/// What is known of an argument: NaN, or a number in [least, most].
struct Bounds {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
};

/// Outside of `bounds` it may be anything.
Expr Exp(const Builder& b, const Expr& x, Bounds bounds);
Expr Exp2(const Builder& b, const Expr& x);
Expr Log(const Builder& b, const Expr& x);
Expr Log2(const Builder& b, const Expr& x);
Expr Tanh(const Builder& b, const Expr& x);
Expr Erf(const Builder& b, const Expr& x);
Expr Sigmoid(const Builder& b, const Expr& x);

// These compute in f64 whatever the type.
Expr Pow(const Builder& b, const Expr& x, const Expr& y);
Expr Sin(const Builder& b, const Expr& x);
Expr Cos(const Builder& b, const Expr& x);
Expr Tan(const Builder& b, const Expr& x);
Expr Atan(const Builder& b, const Expr& x);
Expr Atan2(const Builder& b, const Expr& y, const Expr& x);
Expr Asin(const Builder& b, const Expr& x);
Expr Acos(const Builder& b, const Expr& x);
Expr Hypot(const Builder& b, const Expr& x, const Expr& y);
/// C's fmod, exactly; not of f64.
Expr Remainder(const Builder& b, const Expr& x, const Expr& y);
Expr Exp10(const Builder& b, const Expr& x);
Expr Expm1(const Builder& b, const Expr& x);
Expr Log10(const Builder& b, const Expr& x);
Expr Log1p(const Builder& b, const Expr& x);
Expr Sinh(const Builder& b, const Expr& x);
Expr Cosh(const Builder& b, const Expr& x);
Expr Asinh(const Builder& b, const Expr& x);
Expr Acosh(const Builder& b, const Expr& x);
Expr Atanh(const Builder& b, const Expr& x);

}  // namespace tenon::math
