// Arithmetic of each type, as the machine code must do it.
//
// A lane is a 64-bit integer or a double, whatever its type; the operation is done there and the
// result brought into the type's range. For integers that is wrapping: 200u8 + 100u8 is 300 in 64
// bits and 44 as u8. For f32, f16 and bf16 the operation is done in double and rounded once, which
// is the IEEE result of + - * / and sqrt, since double has more than twice their bits; fma and
// wider things say how they stay exact. Index arithmetic does not wrap: an overflow is a fault.
// Division floors on index and truncates on data, with x / 0 = 0 there, and
//
//   -7 / 2 and -7 % 2 are -4 and 1 of index, -3 and -1 of i32
//
// min and max give the other operand where one is NaN.

#include "interp/value.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "arith/int_math.h"
#include "support/check.h"
#include "support/half.h"

namespace tenon::interp {

namespace {

constexpr int64_t kMin64 = std::numeric_limits<int64_t>::min();

bool IsUnsigned(DType type) { return type.code == TypeCode::kUInt; }

bool Less(DType type, Lane a, Lane b) {
  if (type.IsFloat()) return a.f < b.f;
  if (IsUnsigned(type) || type.IsHandle())
    return static_cast<uint64_t>(a.i) < static_cast<uint64_t>(b.i);
  return a.i < b.i;
}
bool Equal(DType type, Lane a, Lane b) { return type.IsFloat() ? a.f == b.f : a.i == b.i; }

std::optional<int64_t> IndexResult(BinaryOp op, int64_t a, int64_t b) {
  switch (op) {
    case BinaryOp::kAdd: return CheckedAdd(a, b);
    case BinaryOp::kSub: return CheckedSub(a, b);
    case BinaryOp::kMul: return CheckedMul(a, b);
    case BinaryOp::kDiv:
      if (b == 0 || (a == kMin64 && b == -1)) return std::nullopt;
      return FloorDivInt(a, b);
    case BinaryOp::kMod:
      if (b == 0) return std::nullopt;
      return FloorModInt(a, b);
    case BinaryOp::kBitAnd: return a & b;
    case BinaryOp::kBitOr: return a | b;
    case BinaryOp::kBitXor: return a ^ b;
    default: return std::nullopt;  // NOLINT: handled by the caller for all types
  }
}

int64_t DivData(DType type, int64_t a, int64_t b, bool remainder) {
  if (b == 0) return 0;
  if (IsUnsigned(type)) {
    uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    return static_cast<int64_t>(remainder ? x % y : x / y);
  }
  if (b == -1)
    return remainder ? 0 : WrapInt(type, static_cast<int64_t>(0 - static_cast<uint64_t>(a)));
  return remainder ? a % b : a / b;
}

int64_t Shift(DType type, BinaryOp op, int64_t a, int64_t b) {
  bool beyond = b < 0 || b >= type.bits;
  if (op == BinaryOp::kShl)
    return beyond ? 0 : WrapInt(type, static_cast<int64_t>(static_cast<uint64_t>(a) << b));
  if (IsUnsigned(type)) return beyond ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) >> b);
  return beyond ? (a < 0 ? -1 : 0) : a >> b;
}

int64_t IntResult(BinaryOp op, DType type, int64_t a, int64_t b) {
  auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  switch (op) {
    case BinaryOp::kAdd: return WrapInt(type, static_cast<int64_t>(x + y));
    case BinaryOp::kSub: return WrapInt(type, static_cast<int64_t>(x - y));
    case BinaryOp::kMul: return WrapInt(type, static_cast<int64_t>(x * y));
    case BinaryOp::kDiv: return DivData(type, a, b, false);
    case BinaryOp::kMod: return DivData(type, a, b, true);
    case BinaryOp::kAnd:
    case BinaryOp::kBitAnd: return a & b;
    case BinaryOp::kOr:
    case BinaryOp::kBitOr: return a | b;
    case BinaryOp::kBitXor: return a ^ b;
    case BinaryOp::kShl:
    case BinaryOp::kShr: return Shift(type, op, a, b);
    default: TN_UNREACHABLE();  // NOLINT: order and comparison are for all types
  }
}

// Double holds products and sums of narrower operands well enough that one more rounding is the
// IEEE result.
double FloatResult(BinaryOp op, DType type, double a, double b) {
  // Those of 8 bits are f32's, which shows where exponents are as long as its own.
  const auto rounded = [&](double v) {
    return RoundToType(type, type.IsFloat8() ? static_cast<double>(static_cast<float>(v)) : v);
  };
  switch (op) {
    case BinaryOp::kAdd: return rounded(a + b);
    case BinaryOp::kSub: return rounded(a - b);
    case BinaryOp::kMul: return rounded(a * b);
    case BinaryOp::kDiv: return rounded(a / b);
    case BinaryOp::kMod: return rounded(std::fmod(a, b));
    default: TN_UNREACHABLE();  // NOLINT: no operator of floats
  }
}

// The operand that is a number wins over NaN.
Lane Extreme(BinaryOp op, DType type, Lane a, Lane b) {
  if (type.IsFloat() && std::isnan(a.f)) return b;
  if (type.IsFloat() && std::isnan(b.f)) return a;
  bool less = Less(type, b, a);
  return (op == BinaryOp::kMin) == less ? b : a;
}

}  // namespace

int64_t WrapInt(DType type, int64_t v) {
  if (type.IsBool()) return v != 0;
  if (!type.IsInt() || type.bits >= 64) return v;
  int unused = 64 - type.bits;
  auto high = static_cast<uint64_t>(v) << unused;
  return IsUnsigned(type) ? static_cast<int64_t>(high >> unused)
                          : static_cast<int64_t>(high) >> unused;
}

std::optional<Lane> Apply(BinaryOp op, DType type, Lane a, Lane b) {
  switch (op) {
    case BinaryOp::kEq: return IntLane(Equal(type, a, b));
    case BinaryOp::kNe: return IntLane(!Equal(type, a, b));
    case BinaryOp::kLt: return IntLane(Less(type, a, b));
    case BinaryOp::kGt: return IntLane(Less(type, b, a));
    case BinaryOp::kLe: return IntLane(Less(type, a, b) || Equal(type, a, b));
    case BinaryOp::kGe: return IntLane(Less(type, b, a) || Equal(type, a, b));
    case BinaryOp::kMin:
    case BinaryOp::kMax: return Extreme(op, type, a, b);
    default: break;  // NOLINT: arithmetic, below
  }
  if (type.IsFloat()) return FloatLane(FloatResult(op, type, a.f, b.f));
  if (!type.IsIndex()) return IntLane(IntResult(op, type, a.i, b.i));
  auto out = IndexResult(op, a.i, b.i);
  return out ? std::optional(IntLane(*out)) : std::nullopt;
}

Lane Apply(UnaryOp op, DType type, Lane v) {
  switch (op) {
    case UnaryOp::kNeg:
      if (type.IsFloat()) return FloatLane(RoundToType(type, -v.f));
      return IntLane(WrapInt(type, static_cast<int64_t>(0 - static_cast<uint64_t>(v.i))));
    case UnaryOp::kNot: return IntLane(v.i == 0);
    case UnaryOp::kBitNot: return IntLane(WrapInt(type, ~v.i));
  }
  TN_UNREACHABLE();
}

namespace {

// Truncates and saturates; NaN is 0.
int64_t ToInt(DType to, double v) {
  if (std::isnan(v)) return 0;
  v = std::trunc(v);
  int bits = to.IsInt() ? to.bits : 64;
  if (IsUnsigned(to)) {
    if (v <= 0) return 0;
    if (v >= std::ldexp(1.0, bits)) return WrapInt(to, -1);
    return static_cast<int64_t>(static_cast<uint64_t>(v));
  }
  double limit = std::ldexp(1.0, bits - 1);
  if (v >= limit) return static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1);
  if (v < -limit) return static_cast<int64_t>(~uint64_t{0} << (bits - 1));
  return static_cast<int64_t>(v);
}

// Straight to float where that is the type: 64-bit integers would be rounded twice through double.
double ToFloat(DType to, DType from, int64_t v) {
  bool is_f32 = to.code == TypeCode::kFloat && to.bits == 32;
  if (IsUnsigned(from)) {
    auto u = static_cast<uint64_t>(v);
    return is_f32 ? static_cast<double>(static_cast<float>(u))
                  : RoundToType(to, static_cast<double>(u));
  }
  return is_f32 ? static_cast<double>(static_cast<float>(v))
                : RoundToType(to, static_cast<double>(v));
}

}  // namespace

Lane Convert(DType to, DType from, Lane v) {
  if (from.IsFloat()) {
    if (to.IsFloat()) return FloatLane(RoundToType(to, v.f));
    if (to.IsBool()) return IntLane(v.f != 0);
    return IntLane(ToInt(to, v.f));
  }
  if (to.IsFloat()) return FloatLane(ToFloat(to, from, v.i));
  return IntLane(WrapInt(to, v.i));
}

namespace {

// By a wider type: 10^x as pow(10, x) of double loses two bits.
double Exp10(double x) { return static_cast<double>(std::pow(10.0L, static_cast<long double>(x))); }

double FloatIntrinsic(Intrinsic intrinsic, DType type, double x, bool* known) {
  switch (intrinsic) {
    case Intrinsic::kExp: return std::exp(x);
    case Intrinsic::kExp2: return std::exp2(x);
    case Intrinsic::kLog: return std::log(x);
    case Intrinsic::kExp10: return Exp10(x);
    case Intrinsic::kExpm1: return std::expm1(x);
    case Intrinsic::kLog2: return std::log2(x);
    case Intrinsic::kLog10: return std::log10(x);
    case Intrinsic::kLog1p: return std::log1p(x);
    case Intrinsic::kSqrt: return std::sqrt(x);
    case Intrinsic::kRsqrt: return 1 / std::sqrt(x);
    case Intrinsic::kSin: return std::sin(x);
    case Intrinsic::kCos: return std::cos(x);
    case Intrinsic::kTan: return std::tan(x);
    case Intrinsic::kAsin: return std::asin(x);
    case Intrinsic::kAcos: return std::acos(x);
    case Intrinsic::kAtan: return std::atan(x);
    case Intrinsic::kSinh: return std::sinh(x);
    case Intrinsic::kCosh: return std::cosh(x);
    case Intrinsic::kTanh: return std::tanh(x);
    case Intrinsic::kAsinh: return std::asinh(x);
    case Intrinsic::kAcosh: return std::acosh(x);
    case Intrinsic::kAtanh: return std::atanh(x);
    case Intrinsic::kErf: return std::erf(x);
    case Intrinsic::kSigmoid: return 1 / (1 + std::exp(-x));
    case Intrinsic::kAbs: return std::fabs(x);
    case Intrinsic::kFloor: return std::floor(x);
    case Intrinsic::kCeil: return std::ceil(x);
    case Intrinsic::kTrunc: return std::trunc(x);
    case Intrinsic::kRoundEven: return std::nearbyint(x);
    default: *known = false; return 0;  // NOLINT: not a function of one float
  }
}

int64_t IntegerPow(DType type, int64_t base, int64_t exponent) {
  if (type.IsSigned() && exponent < 0) {
    return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  }
  uint64_t result = 1, square = static_cast<uint64_t>(base);
  for (auto rest = static_cast<uint64_t>(exponent); rest != 0; rest >>= 1) {
    if (rest & 1) result *= square;
    square *= square;
  }
  return WrapInt(type, static_cast<int64_t>(result));
}

uint64_t BitsOf(DType type, int64_t value) {
  const auto bits = static_cast<uint64_t>(value);
  return type.bits >= 64 ? bits : bits & ((uint64_t{1} << type.bits) - 1);
}

Lane Fma(DType type, const Lane* x) {
  if (!type.IsFloat()) {
    auto product = static_cast<uint64_t>(x[0].i) * static_cast<uint64_t>(x[1].i);
    return IntLane(WrapInt(type, static_cast<int64_t>(product + static_cast<uint64_t>(x[2].i))));
  }
  if (type.bits == 32) {
    return FloatLane(std::fma(static_cast<float>(x[0].f), static_cast<float>(x[1].f),
                              static_cast<float>(x[2].f)));
  }
  return FloatLane(RoundToType(type, std::fma(x[0].f, x[1].f, x[2].f)));
}

}  // namespace

std::optional<Lane> Apply(Intrinsic intrinsic, DType type, const Lane* args) {
  if (intrinsic == Intrinsic::kFma) return Fma(type, args);
  if (type.IsFloat()) {
    if (intrinsic == Intrinsic::kIsNan) return IntLane(std::isnan(args[0].f));
    if (intrinsic == Intrinsic::kIsInf) return IntLane(std::isinf(args[0].f));
    if (intrinsic == Intrinsic::kPow)
      return FloatLane(RoundToType(type, std::pow(args[0].f, args[1].f)));
    if (intrinsic == Intrinsic::kAtan2)
      return FloatLane(RoundToType(type, std::atan2(args[0].f, args[1].f)));
    if (intrinsic == Intrinsic::kHypot)
      return FloatLane(RoundToType(type, std::hypot(args[0].f, args[1].f)));
    bool known = true;
    double out = FloatIntrinsic(intrinsic, type, args[0].f, &known);
    return known ? std::optional(FloatLane(RoundToType(type, out))) : std::nullopt;
  }
  switch (intrinsic) {
    case Intrinsic::kAbs:
      if (IsUnsigned(type) || args[0].i >= 0) return args[0];
      return Apply(UnaryOp::kNeg, type, args[0]);
    case Intrinsic::kFloor:
    case Intrinsic::kCeil:
    case Intrinsic::kTrunc:
    case Intrinsic::kRoundEven: return args[0];
    case Intrinsic::kIsNan:
    case Intrinsic::kIsInf: return IntLane(0);
    case Intrinsic::kPow: return IntLane(IntegerPow(type, args[0].i, args[1].i));
    case Intrinsic::kPopCount:
      return IntLane(WrapInt(type, std::popcount(BitsOf(type, args[0].i))));
    case Intrinsic::kClz:
      return IntLane(WrapInt(type, std::countl_zero(BitsOf(type, args[0].i)) - (64 - type.bits)));
    default: return std::nullopt;  // NOLINT: no arithmetic of integers
  }
}

namespace {

template <class T>
T LoadAs(const uint8_t* bytes) {
  T v;
  std::memcpy(&v, bytes, sizeof(v));
  return v;
}
template <class T>
void StoreAs(T v, uint8_t* bytes) {
  std::memcpy(bytes, &v, sizeof(v));
}

}  // namespace

Lane Decode(DType type, const uint8_t* bytes) {
  if (type.IsFloat8()) return FloatLane(FormatOf(type.float8).NumberOf(*bytes));
  if (type.code == TypeCode::kBFloat) {
    uint32_t wide = static_cast<uint32_t>(LoadAs<uint16_t>(bytes)) << 16;
    return FloatLane(LoadAs<float>(reinterpret_cast<const uint8_t*>(&wide)));
  }
  if (type.IsFloat()) {
    if (type.bits == 16) return FloatLane(HalfValue(LoadAs<uint16_t>(bytes)));
    return FloatLane(type.bits == 32 ? LoadAs<float>(bytes) : LoadAs<double>(bytes));
  }
  uint64_t raw = 0;
  std::memcpy(&raw, bytes, static_cast<size_t>(type.Element().Bytes()));
  return IntLane(WrapInt(type, static_cast<int64_t>(raw)));
}

void Encode(DType type, Lane v, uint8_t* bytes) {
  if (type.IsFloat8()) {
    *bytes = static_cast<uint8_t>(FormatOf(type.float8).CodeOf(v.f));
  } else if (type.code == TypeCode::kBFloat) {
    auto f = static_cast<float>(v.f);
    StoreAs(static_cast<uint16_t>(LoadAs<uint32_t>(reinterpret_cast<const uint8_t*>(&f)) >> 16),
            bytes);
  } else if (type.IsFloat() && type.bits == 16) {
    StoreAs(HalfBits(v.f), bytes);
  } else if (type.IsFloat() && type.bits == 32) {
    StoreAs(static_cast<float>(v.f), bytes);
  } else {
    std::memcpy(bytes, &v, static_cast<size_t>(type.Element().Bytes()));
  }
}

}  // namespace tenon::interp
