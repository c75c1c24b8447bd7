#include "ops/sort_keys.h"

namespace tenon::ops {

// Floating point that is narrower than any number of the machine sorts as f32.
static DType Sorted(DType type) {
  if (type.IsFloat() && type.bits < 16) return DType::Float(32);
  if (!type.IsFloat() && type.bits < 8)
    return type.code == TypeCode::kUInt ? DType::UInt(8) : DType::Int(8);
  return type;
}

DType SortKeyType(DType type) { return DType::UInt(Sorted(type).bits); }

// Of floating point the sign is the largest bit's complement, and of a negative number all others
// are complemented.
Expr SortKeyOf(Expr x, bool largest) {
  const DType type = Sorted(x->dtype), bits = DType::UInt(type.bits);
  x = CastExpr::Make(type, std::move(x));
  const Expr sign = MakeIntConst(bits, static_cast<int64_t>(uint64_t{1} << (type.bits - 1)));
  const Expr all = MakeIntConst(bits, -1);
  Expr key = x;
  if (type.IsFloat()) {
    const Expr zero = MakeConst(type, 0);
    const Expr raw =
        Call::Make(Intrinsic::kReinterpret, {Select::Make(Eq(x, zero), zero, x)}, bits);
    const auto with = [&](const Expr& mask) { return Binary::Make(BinaryOp::kBitXor, raw, mask); };
    key = Select::Make(Lt(x, zero), with(all), with(sign));
    key = Select::Make(Call::Make(Intrinsic::kIsNan, {x}), all, key);
  } else if (type.code == TypeCode::kInt) {
    key = Binary::Make(BinaryOp::kBitXor, Call::Make(Intrinsic::kReinterpret, {x}, bits), sign);
  }
  return largest ? Binary::Make(BinaryOp::kBitXor, key, all) : key;
}

}  // namespace tenon::ops
