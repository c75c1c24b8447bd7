// Functions of te: those with a row in the table of intrinsics, and those made of others.
#include <cmath>
#include <limits>

#include "api/bridge.h"

namespace tenon::inline v0::te {

namespace {

struct MathRow {
  Intrinsic intrinsic;
  const char* name;
  int arity;
  Purity purity;
  IntrinsicType type;
};
constexpr MathRow kIntrinsics[] = {
#define TN_INTRINSIC(name, text, arity, type, purity, doc) \
  {Intrinsic::k##name, text, arity, Purity::purity, IntrinsicType::type},
#include "ir/intrinsics.def"
#undef TN_INTRINSIC
};

}  // namespace

Expr CallIntrinsic(const std::string& name, const std::vector<Expr>& args) {
  for (const MathRow& row : kIntrinsics) {
    if (name != row.name || row.purity != Purity::kPure || row.type == IntrinsicType::kGiven ||
        row.intrinsic == Intrinsic::kPtrOffset || row.intrinsic == Intrinsic::kReduceAdd) {
      continue;
    }
    if (static_cast<int>(args.size()) != row.arity) {
      ThrowType(fmt::format("{} takes {} arguments but got {}", name, row.arity, args.size()));
    }
    const bool needs_float = row.intrinsic != Intrinsic::kAbs && row.intrinsic != Intrinsic::kPow;
    const bool needs_bits =
        row.intrinsic == Intrinsic::kPopCount || row.intrinsic == Intrinsic::kClz;
    ExprData common = args[0].data();
    for (const Expr& a : args) {
      RequireScalarValue(a.data());
      DType type = CommonType(common, a.data());
      common.literal = common.literal && a.data().literal;
      common.expr = Convert(a.data(), type);
    }
    DType type = common.expr->dtype;
    if (needs_bits) {
      if (type.IsIndex()) type = DType::Int(64);
      if (!type.IsInt())
        ThrowType(fmt::format("{} is of integers, not of {}", name, LongName(type)));
    } else if (type.IsIndex() || (needs_float && !type.IsFloat())) {
      type = DType::Float(32);
    }
    std::vector<inner::Expr> values;
    for (const Expr& a : args) values.push_back(Convert(a.data(), type));
    return Wrap(Call::Make(row.intrinsic, std::move(values)), args);
  }
  ThrowValue(
      fmt::format("there is no function '{}' of numbers; see docs/tensor-expressions.md", name));
}

namespace {

// Whether the remainder of integers is one that floors and truncates differ in.
Expr SignsDiffer(const Expr& remainder, const Expr& divisor) {
  const DataType type = remainder.dtype();
  return NotEqual(remainder, 0) && ((remainder < 0) ^ (Cast(divisor, type) < 0));
}

DataType FloatTypeOf(const Expr& e) {
  return Unwrap(e)->dtype.IsFloat() ? e.dtype() : DataType{TN_DL_FLOAT, 32};
}

// How a float is stored.
struct Format {
  DataType integer;
  int bias, mantissa;
};
Format FormatOf(DataType type) {
  const DataType integer = {TN_DL_INT, type.bits};
  if (type.code == TN_DL_BFLOAT) return {integer, 127, 7};
  if (type.bits == 16) return {integer, 15, 10};
  if (type.bits == 8) {
    const Minifloat& format = FormatOf(FromPublic(type).float8);
    return {integer, format.bias, format.mantissa};
  }
  return type.bits == 32 ? Format{integer, 127, 23} : Format{integer, 1023, 52};
}

double LargestFinite(DataType type) {
  if (const DType t = FromPublic(type); t.IsFloat8()) return GreatestOf(t);
  const Format f = FormatOf(type);
  return std::ldexp(2 - std::ldexp(1.0, -f.mantissa), f.bias);
}

Expr SignOf(const Expr& value) {
  const DataType integer = FormatOf(value.dtype()).integer;
  return Reinterpret(value, integer) & MinValue(integer);
}

}  // namespace

// Data integers truncate, so where the remainder's sign is not the divisor's, one less.
Expr FloorDiv(const Expr& a, const Expr& b) {
  Expr q = a / b;
  const DType type = Unwrap(q)->dtype;
  if (type.IsFloat()) return Floor(q);
  if (type.code != TypeCode::kInt) return q;
  return Select(SignsDiffer(a % b, b), q - 1, q);
}
Expr FloorMod(const Expr& a, const Expr& b) {
  Expr r = a % b;
  const DType type = Unwrap(r)->dtype;
  if (type.IsFloat()) return a - FloorDiv(a, b) * b;
  if (type.code != TypeCode::kInt) return r;
  return Select(SignsDiffer(r, b), r + b, r);
}

// Sizes and loop variables floor: where that leaves a remainder and the signs differ, one more.
Expr TruncDiv(const Expr& a, const Expr& b) {
  Expr q = a / b;
  const DType type = Unwrap(q)->dtype;
  if (type.IsFloat()) return Trunc(q);
  if (!type.IsIndex()) return q;
  return Select(NotEqual(a % b, 0) && ((a < 0) ^ (b < 0)), q + 1, q);
}
Expr TruncMod(const Expr& a, const Expr& b) {
  Expr r = a % b;
  if (!Unwrap(r)->dtype.IsIndex()) return r;
  return Select(NotEqual(r, 0) && ((a < 0) ^ (b < 0)), r - b, r);
}

Expr IsFinite(const Expr& x) { return Abs(Cast(x, FloatTypeOf(x))) < Infinity(FloatTypeOf(x)); }

Expr CopySign(const Expr& given_x, const Expr& given_y) {
  const DataType type = FloatTypeOf(given_x + given_y);
  const Expr x = Cast(given_x, type), y = Cast(given_y, type);
  const DataType integer = FormatOf(type).integer;
  return Reinterpret((Reinterpret(x, integer) & MaxValue(integer)) | SignOf(y), type);
}

// The bits of floats of one sign are ordered as their magnitudes are.
Expr NextAfter(const Expr& given_x, const Expr& given_y) {
  const DataType type = FloatTypeOf(given_x + given_y);
  const Expr x = Cast(given_x, type), y = Cast(given_y, type);
  const Expr grows = Equal(y > x, x > 0);
  const Expr bits = Reinterpret(x, FormatOf(type).integer);
  const Expr next =
      Select(Equal(x, 0), SignOf(y) | 1, bits + Select(grows, ConstantInt(1, bits.dtype()), -1));
  const Expr moved = Select(Equal(x, y), y, Reinterpret(next, type));
  return Select(IsNan(x) || IsNan(y), x + y, moved);
}

// In steps that a factor can make. On the way down they leave room for the bits that are lost at
// the end, so that only the last product rounds.
Expr LdExp(const Expr& given_x, const Expr& given_n) {
  const DataType type = FloatTypeOf(given_x);
  const DataType wide = type.bits < 32 ? DataType{TN_DL_FLOAT, 32} : type;
  const Format f = FormatOf(wide);
  const int highest = f.bias, lowest = 1 - f.bias, step = lowest + f.mantissa + 1;
  constexpr int kMost = 4096;
  Expr n = Cast(Maximum(Minimum(Cast(given_n, {TN_DL_INT, 64}), kMost), -kMost), f.integer);
  Expr x = Cast(given_x, wide);
  for (int i = 0; i < 2; ++i) {
    const Expr high = n > highest, low = n < lowest;
    x = x * Select(high, Constant(std::ldexp(1.0, highest), wide),
                   Select(low, Constant(std::ldexp(1.0, step), wide), 1.0));
    n = n -
        Select(high, ConstantInt(highest, f.integer), Select(low, ConstantInt(step, f.integer), 0));
  }
  n = Maximum(Minimum(n, highest), lowest);
  return Cast(x * Reinterpret((n + f.bias) << f.mantissa, wide), type);
}

Expr MinValue(DataType dtype) {
  const DType type = FromPublic(dtype);
  if (type.IsFloat()) return Constant(-LargestFinite(dtype), dtype);
  const int64_t least = std::numeric_limits<int64_t>::min() >> (64 - type.bits);
  return ConstantInt(type.code == TypeCode::kInt ? least : 0, dtype);
}
Expr MaxValue(DataType dtype) {
  const DType type = FromPublic(dtype);
  if (type.IsFloat()) return Constant(LargestFinite(dtype), dtype);
  const int64_t most = std::numeric_limits<int64_t>::max() >> (64 - type.bits);
  const int64_t all_ones = type.IsBool() ? 1 : -1;
  return ConstantInt(type.code == TypeCode::kInt ? most : all_ones, dtype);
}
Expr Infinity(DataType dtype) {
  if (!FromPublic(dtype).IsFloat()) ThrowType(fmt::format("{} has no infinity", ToString(dtype)));
  return Constant(std::numeric_limits<double>::infinity(), dtype);
}

static Expr Chain(const std::vector<Expr>& conditions, bool all) {
  constexpr DataType kBool = {TN_DL_BOOL, 8};
  if (conditions.empty()) return ConstantInt(all ? 1 : 0, kBool);
  Expr chain = Cast(conditions[0], kBool);
  for (size_t i = 1; i < conditions.size(); ++i) {
    chain = all ? chain && conditions[i] : chain || conditions[i];
  }
  return chain;
}
Expr All(const std::vector<Expr>& conditions) { return Chain(conditions, true); }
Expr Any(const std::vector<Expr>& conditions) { return Chain(conditions, false); }

}  // namespace tenon::inline v0::te
