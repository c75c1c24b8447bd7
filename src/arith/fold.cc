// Constant folding and identities that need no facts.
#include <bit>
#include <cmath>

#include "arith/analyzer_impl.h"
#include "arith/int_math.h"
#include "support/check.h"

namespace tenon {

namespace {

std::optional<bool> FoldCompareInts(BinaryOp op, int64_t a, int64_t b, bool is_unsigned) {
  // Flipping the top bit turns unsigned order into signed order.
  if (is_unsigned) {
    a ^= std::numeric_limits<int64_t>::min();
    b ^= std::numeric_limits<int64_t>::min();
  }
  switch (op) {
    case BinaryOp::kEq: return a == b;
    case BinaryOp::kNe: return a != b;
    case BinaryOp::kLt: return a < b;
    case BinaryOp::kLe: return a <= b;
    case BinaryOp::kGt: return a > b;
    case BinaryOp::kGe: return a >= b;
    default: return std::nullopt;  // NOLINT: not a comparison
  }
}

std::optional<int64_t> FoldIndex(BinaryOp op, int64_t a, int64_t b) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  switch (op) {
    case BinaryOp::kAdd: return CheckedAdd(a, b);
    case BinaryOp::kSub: return CheckedSub(a, b);
    case BinaryOp::kMul: return CheckedMul(a, b);
    case BinaryOp::kDiv:
      if (b == 0 || (a == kMin && b == -1)) return std::nullopt;
      return FloorDivInt(a, b);
    case BinaryOp::kMod:
      if (b == 0) return std::nullopt;
      return FloorModInt(a, b);
    case BinaryOp::kMin: return std::min(a, b);
    case BinaryOp::kMax: return std::max(a, b);
    default: return std::nullopt;  // NOLINT: no index operator
  }
}

int64_t DivideData(DType type, int64_t a, int64_t b, bool remainder) {
  if (b == 0) return 0;
  if (type.code == TypeCode::kUInt) {
    auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    return static_cast<int64_t>(remainder ? x % y : x / y);
  }
  if (b == -1) return remainder ? 0 : static_cast<int64_t>(0 - static_cast<uint64_t>(a));  // wraps
  return remainder ? a % b : a / b;
}

int64_t ShiftData(DType type, BinaryOp op, int64_t a, int64_t b) {
  bool negative = type.code == TypeCode::kInt && a < 0;
  // A shift count is unsigned: negative ones are beyond any width.
  if (b < 0 || b >= type.bits) return op == BinaryOp::kShr && negative ? -1 : 0;
  if (op == BinaryOp::kShl) return static_cast<int64_t>(static_cast<uint64_t>(a) << b);
  if (type.code == TypeCode::kInt) return a >> b;
  return static_cast<int64_t>(static_cast<uint64_t>(a) >> b);
}

// Data integers and bool; IntConst::Make wraps the result to the type.
std::optional<int64_t> FoldData(DType type, BinaryOp op, int64_t a, int64_t b) {
  bool is_unsigned = type.code == TypeCode::kUInt;
  auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  switch (op) {
    case BinaryOp::kAdd: return static_cast<int64_t>(ua + ub);
    case BinaryOp::kSub: return static_cast<int64_t>(ua - ub);
    case BinaryOp::kMul: return static_cast<int64_t>(ua * ub);
    case BinaryOp::kDiv: return DivideData(type, a, b, false);
    case BinaryOp::kMod: return DivideData(type, a, b, true);
    case BinaryOp::kMin: return *FoldCompareInts(BinaryOp::kLt, a, b, is_unsigned) ? a : b;
    case BinaryOp::kMax: return *FoldCompareInts(BinaryOp::kLt, a, b, is_unsigned) ? b : a;
    case BinaryOp::kAnd:
    case BinaryOp::kBitAnd: return a & b;
    case BinaryOp::kOr:
    case BinaryOp::kBitOr: return a | b;
    case BinaryOp::kBitXor: return a ^ b;
    case BinaryOp::kShl:
    case BinaryOp::kShr: return ShiftData(type, op, a, b);
    default: return std::nullopt;  // NOLINT: comparisons are folded by the caller
  }
}

Expr FoldFloats(BinaryOp op, DType result, DType type, double a, double b) {
  // Operands of at most 53 bits: computing in double and rounding once more is exact IEEE for
  // narrower types.
  auto value = [&](double v) { return MakeConst(result, v); };
  auto truth = [&](bool v) { return MakeIntConst(result, v); };
  switch (op) {
    case BinaryOp::kAdd: return value(a + b);
    case BinaryOp::kSub: return value(a - b);
    case BinaryOp::kMul: return value(a * b);
    case BinaryOp::kDiv: return value(a / b);
    case BinaryOp::kMin: return value(std::isnan(a) || b < a ? b : a);
    case BinaryOp::kMax: return value(std::isnan(a) || b > a ? b : a);
    case BinaryOp::kEq: return truth(a == b);
    case BinaryOp::kNe: return truth(a != b);
    case BinaryOp::kLt: return truth(a < b);
    case BinaryOp::kLe: return truth(a <= b);
    case BinaryOp::kGt: return truth(a > b);
    case BinaryOp::kGe: return truth(a >= b);
    default: return nullptr;  // NOLINT: kMod of floats is left to run time
  }
}

}  // namespace

Expr FoldBinary(BinaryOp op, const Expr& lhs, const Expr& rhs) {
  DType type = lhs->dtype;
  DType result = Info(op).is_comparison ? DType::Bool().WithLanes(type.lanes, type.scalable) : type;
  if (type.IsFloat()) {
    auto a = AsFloat(lhs), b = AsFloat(rhs);
    return a && b ? FoldFloats(op, result, type, *a, *b) : nullptr;
  }
  auto a = AsInt(lhs), b = AsInt(rhs);
  if (!a || !b) return nullptr;
  if (Info(op).is_comparison) {
    auto truth = FoldCompareInts(op, *a, *b, type.code == TypeCode::kUInt);
    return truth ? MakeIntConst(result, *truth) : nullptr;
  }
  auto value = type.IsIndex() ? FoldIndex(op, *a, *b) : FoldData(type.Element(), op, *a, *b);
  return value ? MakeIntConst(result, *value) : nullptr;
}

Expr FoldUnary(UnaryOp op, const Expr& value) {
  DType type = value->dtype;
  if (type.IsFloat()) {
    auto v = AsFloat(value);
    return v && op == UnaryOp::kNeg ? MakeConst(type, -*v) : nullptr;
  }
  auto v = AsInt(value);
  if (!v) return nullptr;
  switch (op) {
    case UnaryOp::kNeg:
      if (type.IsIndex() && *v == std::numeric_limits<int64_t>::min()) return nullptr;
      return MakeIntConst(type, static_cast<int64_t>(0 - static_cast<uint64_t>(*v)));
    case UnaryOp::kNot: return MakeIntConst(type, *v == 0);
    case UnaryOp::kBitNot: return MakeIntConst(type, ~*v);
  }
  TN_UNREACHABLE();
}

// Truncates and saturates; NaN becomes 0.
static int64_t FloatToInt(DType type, double v) {
  if (std::isnan(v)) return 0;
  v = std::trunc(v);
  int bits = type.IsIndex() ? 64 : type.bits;
  if (type.code == TypeCode::kUInt) {
    if (v <= 0) return 0;
    if (v >= std::ldexp(1.0, bits)) return -1;  // all ones; wrapped to the width by the constant
    return static_cast<int64_t>(static_cast<uint64_t>(v));
  }
  double limit = std::ldexp(1.0, bits - 1);
  if (v >= limit) return static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1);
  if (v < -limit) return static_cast<int64_t>(~uint64_t{0} << (bits - 1));
  return static_cast<int64_t>(v);
}

Expr FoldCast(DType type, const Expr& value) {
  DType from = value->dtype;
  type = type.WithLanes(from.lanes, from.scalable);
  if (type.IsHandle() || from.IsHandle()) return nullptr;
  if (from.IsFloat()) {
    auto v = AsFloat(value);
    if (!v) return nullptr;
    if (type.IsFloat()) return MakeConst(type, *v);
    if (type.IsBool()) return MakeIntConst(type, *v != 0);
    return MakeIntConst(type, FloatToInt(type.Element(), *v));
  }
  auto v = AsInt(value);
  if (!v) return nullptr;
  if (!type.IsFloat()) return MakeIntConst(type, type.IsBool() ? *v != 0 : *v);
  // Beyond 2^53 the detour through double would round twice.
  constexpr int64_t kExact = int64_t{1} << 53;
  if (*v > kExact || *v < -kExact) return nullptr;
  return MakeConst(type, static_cast<double>(*v));
}

Expr FoldCall(const Call& call) {
  if (call.args.size() != 1 || !call.dtype.IsFloat()) return nullptr;
  auto v = call.args[0]->dtype.IsFloat() ? AsFloat(call.args[0]) : std::nullopt;
  if (!v) return nullptr;
  switch (call.intrinsic) {  // only what every machine computes to the last bit
    case Intrinsic::kSqrt: return MakeConst(call.dtype, std::sqrt(*v));
    case Intrinsic::kAbs: return MakeConst(call.dtype, std::fabs(*v));
    case Intrinsic::kFloor: return MakeConst(call.dtype, std::floor(*v));
    case Intrinsic::kCeil: return MakeConst(call.dtype, std::ceil(*v));
    case Intrinsic::kTrunc: return MakeConst(call.dtype, std::trunc(*v));
    case Intrinsic::kRoundEven: return MakeConst(call.dtype, std::nearbyint(*v));
    default: return nullptr;  // NOLINT: the others are not correctly rounded everywhere
  }
}

Expr FoldIdentity(BinaryOp op, const Expr& lhs, const Expr& rhs) {
  if (lhs->dtype.IsFloat()) {
    auto b = AsFloat(rhs);
    // x + 0 is not x for x = -0; x - 0 is.
    if (op == BinaryOp::kSub && b && *b == 0 && !std::signbit(*b)) return lhs;
    if ((op == BinaryOp::kMul || op == BinaryOp::kDiv) && b && *b == 1) return lhs;
    auto a = AsFloat(lhs);
    if (op == BinaryOp::kMul && a && *a == 1) return rhs;
    return nullptr;
  }
  bool left_zero = IsZero(lhs), right_zero = IsZero(rhs), left_one = IsOne(lhs),
       right_one = IsOne(rhs);
  switch (op) {
    case BinaryOp::kAdd:
    case BinaryOp::kBitOr:
    case BinaryOp::kBitXor: return right_zero ? lhs : left_zero ? rhs : nullptr;
    case BinaryOp::kSub:
    case BinaryOp::kShl:
    case BinaryOp::kShr: return right_zero ? lhs : nullptr;
    case BinaryOp::kMul:
      if (left_zero || right_one) return lhs;
      return right_zero || left_one ? rhs : nullptr;
    case BinaryOp::kDiv: return right_one || left_zero ? lhs : nullptr;
    case BinaryOp::kMod:
      if (right_one && !rhs->dtype.IsBool()) return MakeIntConst(lhs->dtype, 0);
      return left_zero ? lhs : nullptr;
    case BinaryOp::kBitAnd: return left_zero ? lhs : right_zero ? rhs : nullptr;
    default: return nullptr;  // NOLINT: bool and order have their own rules
  }
}

}  // namespace tenon
