// Conversions between scalar types. No conversion of ours traps, and none needs a library.
#include <llvm/IR/Intrinsics.h>
#include <cmath>

#include "codegen/llvm/values.h"
#include "support/check.h"

namespace tenon::codegen {

using llvm::Value;

Value* ValueBuilder::Widen(DType half, Value* bits) {
  if (half.code == TypeCode::kFloat) return WidenF16(bits);
  llvm::Type* i32 = WithLanesOf(ir_.getInt32Ty(), bits->getType());
  Value* shifted = ir_.CreateShl(ir_.CreateZExt(bits, i32), Bits(i32, 16));
  return ir_.CreateBitCast(shifted, WithLanesOf(ir_.getFloatTy(), bits->getType()));
}

Value* ValueBuilder::WidenF16(Value* bits) {
  llvm::Type* f32 = WithLanesOf(ir_.getFloatTy(), bits->getType());
  if (target_.arch() == Arch::kAArch64 || target_.Has("f16c")) {
    Value* half = ir_.CreateBitCast(bits, WithLanesOf(ir_.getHalfTy(), bits->getType()));
    return ir_.CreateFPExt(half, f32);
  }
  // Placing exponent and mantissa in an f32 gives the value over 2^112, denormals included;
  // infinity and NaN need the largest exponent.
  llvm::Type* i32 = WithLanesOf(ir_.getInt32Ty(), bits->getType());
  Value* wide = ir_.CreateZExt(bits, i32);
  Value* magnitude = ir_.CreateShl(ir_.CreateAnd(wide, Bits(i32, 0x7FFF)), Bits(i32, 13));
  Value* scaled = ir_.CreateFMul(ir_.CreateBitCast(magnitude, f32), Const(f32, 0x1p112));
  Value* special = ir_.CreateBitCast(ir_.CreateOr(magnitude, Bits(i32, 0x7F800000)), f32);
  Value* is_special = ir_.CreateICmpUGE(magnitude, Bits(i32, 0x0F800000));
  Value* result = ir_.CreateBitCast(ir_.CreateSelect(is_special, special, scaled), i32);
  Value* sign = ir_.CreateShl(ir_.CreateAnd(wide, Bits(i32, 0x8000)), Bits(i32, 16));
  return ir_.CreateBitCast(ir_.CreateOr(result, sign), f32);
}

Value* ValueBuilder::Narrow(DType half, Value* f32) {
  if (half.code == TypeCode::kFloat) return NarrowToF16(f32);
  llvm::Type* i32 = WithLanesOf(ir_.getInt32Ty(), f32->getType());
  llvm::Type* i16 = WithLanesOf(ir_.getInt16Ty(), f32->getType());
  Value* bits = ir_.CreateBitCast(f32, i32);
  Value* lsb = ir_.CreateAnd(ir_.CreateLShr(bits, Bits(i32, 16)), Bits(i32, 1));
  Value* rounded = ir_.CreateAdd(bits, ir_.CreateAdd(lsb, Bits(i32, 0x7FFF)));
  Value* quiet = ir_.CreateOr(bits, Bits(i32, 0x00400000));
  Value* chosen = ir_.CreateSelect(ir_.CreateFCmpUNO(f32, f32), quiet, rounded);
  return ir_.CreateTrunc(ir_.CreateLShr(chosen, Bits(i32, 16)), i16);
}

Value* ValueBuilder::NarrowToF16(Value* f32) {
  llvm::Type* i16 = WithLanesOf(ir_.getInt16Ty(), f32->getType());
  if (target_.arch() == Arch::kAArch64 || target_.Has("f16c")) {
    Value* half = ir_.CreateFPTrunc(f32, WithLanesOf(ir_.getHalfTy(), f32->getType()));
    return ir_.CreateBitCast(half, i16);
  }
  llvm::IRBuilder<>::FastMathFlagGuard guard(ir_);
  ir_.setFastMathFlags({});
  llvm::Type* ft = f32->getType();
  llvm::Type* i32 = WithLanesOf(ir_.getInt32Ty(), ft);
  Value* bits = ir_.CreateBitCast(f32, i32);
  Value* magnitude = ir_.CreateAnd(bits, Bits(i32, 0x7FFFFFFF));
  // Normal results: round at bit 13 and move the exponent. Denormal ones: adding 1/2 puts the unit
  // at the last bit.
  Value* lsb = ir_.CreateAnd(ir_.CreateLShr(magnitude, Bits(i32, 13)), Bits(i32, 1));
  Value* normal = ir_.CreateAdd(magnitude, ir_.CreateAdd(lsb, Bits(i32, 0xFFF)));
  normal = ir_.CreateLShr(ir_.CreateSub(normal, Bits(i32, 112u << 23)), Bits(i32, 13));
  Value* tiny = ir_.CreateFAdd(ir_.CreateBitCast(magnitude, ft), Const(ft, 0.5));
  tiny = ir_.CreateSub(ir_.CreateBitCast(tiny, i32), Bits(i32, 0x3F000000));
  Value* result =
      ir_.CreateSelect(ir_.CreateICmpULT(magnitude, Bits(i32, 113u << 23)), tiny, normal);
  result = ir_.CreateSelect(ir_.CreateICmpUGE(magnitude, Bits(i32, 143u << 23)), Bits(i32, 0x7C00),
                            result);
  Value* nan = ir_.CreateOr(
      ir_.CreateAnd(ir_.CreateLShr(magnitude, Bits(i32, 13)), Bits(i32, 0x3FF)), Bits(i32, 0x7E00));
  result = ir_.CreateSelect(ir_.CreateICmpUGT(magnitude, Bits(i32, 0x7F800000)), nan, result);
  Value* sign = ir_.CreateAnd(ir_.CreateLShr(bits, Bits(i32, 16)), Bits(i32, 0x8000));
  return ir_.CreateTrunc(ir_.CreateOr(result, sign), i16);
}

// f64 → f32 with an inexact result made odd, so that rounding it further to 16 bits is as if once.
Value* ValueBuilder::RoundToOdd(Value* f64) {
  llvm::Type* f32 = WithLanesOf(ir_.getFloatTy(), f64->getType());
  llvm::Type* i32 = WithLanesOf(ir_.getInt32Ty(), f64->getType());
  Value* near = ir_.CreateFPTrunc(f64, f32);
  Value* back = ir_.CreateFPExt(near, f64->getType());
  Value* above = ir_.CreateFCmpOGT(Intrinsic1(llvm::Intrinsic::fabs, back),
                                   Intrinsic1(llvm::Intrinsic::fabs, f64));
  Value* bits = ir_.CreateBitCast(near, i32);
  Value* down = ir_.CreateSub(bits, ir_.CreateZExt(above, i32));
  Value* odd = ir_.CreateOr(down, ir_.CreateZExt(ir_.CreateFCmpONE(back, f64), i32));
  return ir_.CreateBitCast(odd, f32);
}

// What a float saturates to before it becomes an integer of few bits: both ends are floats, and the
// machine's conversion to 32 bits has room for what lies between. A comparison with NaN is false,
// so that the unsigned lower end takes it to 0.
Value* ValueBuilder::FloatToFewBits(DType to, Value* v) {
  llvm::Type* ft = v->getType();
  const int bits = to.bits;
  const double most = std::ldexp(1.0, to.IsSigned() ? bits - 1 : bits) - 1,
               least = to.IsSigned() ? -std::ldexp(1.0, bits - 1) : 0;
  Value* x = v;
  if (to.IsSigned()) x = ir_.CreateSelect(ir_.CreateFCmpORD(v, v), v, Const(ft, 0.0));
  x = ir_.CreateSelect(ir_.CreateFCmpOGT(x, Const(ft, least)), x, Const(ft, least));
  x = ir_.CreateSelect(ir_.CreateFCmpOLT(x, Const(ft, most)), x, Const(ft, most));
  Value* wide = ir_.CreateFPToSI(x, WithLanesOf(ir_.getInt32Ty(), ft));
  return ir_.CreateTrunc(wide, TypeOf(to), "", /*IsNUW=*/!to.IsSigned(), /*IsNSW=*/to.IsSigned());
}

// Truncates, saturates, and gives 0 for NaN. The machine's conversion is only asked about values
// inside the range.
Value* ValueBuilder::FloatToInt(DType from, DType to, Value* v) {
  if (to.bits <= 16) return FloatToFewBits(to, v);
  llvm::Type* type = TypeOf(to);
  llvm::Type* ft = v->getType();
  const unsigned bits = type->getScalarSizeInBits();
  const bool is_signed = to.IsSigned();
  const double above = std::ldexp(1.0, static_cast<int>(is_signed ? bits - 1 : bits));
  // The least value that truncates into the range is just above -1 for unsigned; for signed,
  // -2^(bits-1) itself.
  Value* low_ok =
      is_signed ? ir_.CreateFCmpOGE(v, Const(ft, -above)) : ir_.CreateFCmpOGT(v, Const(ft, -1.0));
  Value* high = ir_.CreateFCmpOGE(v, Const(ft, above));
  Value* inside = ir_.CreateAnd(low_ok, ir_.CreateNot(high));
  Value* safe = ir_.CreateSelect(inside, v, Const(ft, 0.0));
  Value* result = is_signed ? ir_.CreateFPToSI(safe, type) : ir_.CreateFPToUI(safe, type);
  llvm::APInt most =
      is_signed ? llvm::APInt::getSignedMaxValue(bits) : llvm::APInt::getMaxValue(bits);
  result = ir_.CreateSelect(high, llvm::ConstantInt::get(type, most), result);
  if (!is_signed) return result;
  Value* low = ir_.CreateFCmpOLT(v, Const(ft, -above));
  llvm::APInt least = llvm::APInt::getSignedMinValue(bits);
  return ir_.CreateSelect(low, llvm::ConstantInt::get(type, least), result);
}

Value* ValueBuilder::Cast(DType from, DType to, Value* v) {
  if (from == to) return v;
  llvm::Type* type = TypeOf(to);
  if (IsHalf(from)) return Cast(Wide(from), to, Widen(from, v));
  if (IsHalf(to)) {
    if (from.IsFloat()) return Narrow(to, from.bits == 64 ? RoundToOdd(v) : v);
    // 64-bit integers would be rounded twice on the way through f32, and 32-bit ones too.
    const bool exact = from.IsBool() || from.bits <= 16;
    return Cast(exact ? Wide(to) : DType::Float(64).WithLanes(to.lanes), to,
                Cast(from, exact ? Wide(to) : DType::Float(64).WithLanes(to.lanes), v));
  }
  if (to.IsBool()) {
    if (from.IsFloat()) return ir_.CreateFCmpUNE(v, Const(v->getType(), 0.0));
    return ir_.CreateIsNotNull(v);
  }
  if (from.IsHandle() || to.IsHandle()) {
    return from.IsHandle() ? ir_.CreatePtrToInt(v, type) : ir_.CreateIntToPtr(v, type);
  }
  if (from.IsFloat()) return to.IsFloat() ? ir_.CreateFPCast(v, type) : FloatToInt(from, to, v);
  // One masked move; as an integer it would be made first and converted then.
  if (to.IsFloat() && from.IsBool()) return ir_.CreateSelect(v, Const(type, 1.0), Const(type, 0.0));
  if (to.IsFloat()) return from.IsSigned() ? ir_.CreateSIToFP(v, type) : ir_.CreateUIToFP(v, type);
  return from.IsSigned() ? ir_.CreateSExtOrTrunc(v, type) : ir_.CreateZExtOrTrunc(v, type);
}

}  // namespace tenon::codegen
