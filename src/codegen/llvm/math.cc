// The functions that machines compute themselves, and their replacements where the target's
// instruction set lacks them.
#include <llvm/IR/Intrinsics.h>

#include "codegen/llvm/values.h"
#include "support/check.h"

namespace tenon::codegen {

using llvm::Value;

Value* ValueBuilder::Intrinsic1(llvm::Intrinsic::ID id, Value* v) {
  return ir_.CreateUnaryIntrinsic(id, v);
}

bool ValueBuilder::HasRounding() const {
  return target_.arch() != Arch::kX86_64 || target_.Has(Feature::kSse41);
}

// The nearest integer of a magnitude below 2^(p-1): adding and subtracting 2^(p-1) leaves no bit
// below the unit.
Value* ValueBuilder::RoundByAdding(Value* magnitude) {
  llvm::IRBuilder<>::FastMathFlagGuard guard(ir_);
  ir_.setFastMathFlags({});
  llvm::Type* type = magnitude->getType();
  Value* big = Const(type, type->getScalarType()->isFloatTy() ? 0x1p23 : 0x1p52);
  Value* rounded = ir_.CreateFSub(ir_.CreateFAdd(magnitude, big), big);
  return ir_.CreateSelect(ir_.CreateFCmpOLT(magnitude, big), rounded, magnitude);
}

Value* ValueBuilder::SoftRound(Intrinsic intrinsic, Value* v) {
  llvm::Type* type = v->getType();
  Value* one = Const(type, 1.0);
  Value* zero = Const(type, 0.0);
  Value* magnitude = Intrinsic1(llvm::Intrinsic::fabs, v);
  Value* near = RoundByAdding(magnitude);
  Value* negative = ir_.CreateFCmpOLT(v, zero);
  // On magnitudes, floor of a negative number is ceil, and the reverse.
  Value* down =
      ir_.CreateFSub(near, ir_.CreateSelect(ir_.CreateFCmpOGT(near, magnitude), one, zero));
  Value* up = ir_.CreateFAdd(near, ir_.CreateSelect(ir_.CreateFCmpOLT(near, magnitude), one, zero));
  Value* result = near;
  if (intrinsic == Intrinsic::kTrunc) result = down;
  if (intrinsic == Intrinsic::kFloor) result = ir_.CreateSelect(negative, up, down);
  if (intrinsic == Intrinsic::kCeil) result = ir_.CreateSelect(negative, down, up);
  return ir_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, result, v);
}

// f32 only: the product is exact in f64; the sum is rounded to odd there, so that rounding it again
// to f32 is as if once (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
Value* ValueBuilder::SoftFma(Value* a, Value* b, Value* c) {
  if (a->getType()->getScalarType()->isDoubleTy()) return nullptr;
  llvm::IRBuilder<>::FastMathFlagGuard guard(ir_);
  ir_.setFastMathFlags({});
  llvm::Type* f64 = WithLanesOf(ir_.getDoubleTy(), a->getType());
  llvm::Type* i64 = WithLanesOf(ir_.getInt64Ty(), a->getType());
  Value* p = ir_.CreateFMul(ir_.CreateFPExt(a, f64), ir_.CreateFPExt(b, f64));
  Value* z = ir_.CreateFPExt(c, f64);
  Value* s = ir_.CreateFAdd(p, z);
  Value* back = ir_.CreateFSub(s, p);
  Value* error =
      ir_.CreateFAdd(ir_.CreateFSub(p, ir_.CreateFSub(s, back)), ir_.CreateFSub(z, back));
  Value* zero = Const(f64, 0.0);
  Value* inexact = ir_.CreateFCmpONE(error, zero);  // false for NaN, from infinities
  Value* bits = ir_.CreateBitCast(s, i64);
  Value* even = ir_.CreateICmpEQ(ir_.CreateAnd(bits, Bits(i64, 1)), Bits(i64, 0));
  Value* grows = ir_.CreateICmpEQ(ir_.CreateFCmpOGT(error, zero), ir_.CreateFCmpOGT(s, zero));
  Value* step = ir_.CreateSelect(grows, Bits(i64, 1), llvm::Constant::getAllOnesValue(i64));
  Value* odd = ir_.CreateAdd(bits, step);
  Value* chosen = ir_.CreateSelect(ir_.CreateAnd(inexact, even), odd, bits);
  return ir_.CreateFPTrunc(ir_.CreateBitCast(chosen, f64), a->getType());
}

Value* ValueBuilder::IntegerPow(DType type, Value* base, Value* exponent) {
  llvm::Type* t = base->getType();
  Value *zero = Bits(t, 0), *one = Bits(t, 1), *minus_one = llvm::Constant::getAllOnesValue(t);
  Value *result = one, *square = base, *rest = exponent;
  const int magnitude_bits = type.bits - (type.IsSigned() ? 1 : 0);
  for (int bit = 0; bit < magnitude_bits; ++bit) {
    Value* odd = ir_.CreateICmpNE(ir_.CreateAnd(rest, one), zero);
    result = ir_.CreateSelect(odd, ir_.CreateMul(result, square), result);
    square = ir_.CreateMul(square, square);
    rest = ir_.CreateLShr(rest, one);
  }
  if (!type.IsSigned()) return result;
  Value* odd = ir_.CreateICmpNE(ir_.CreateAnd(exponent, one), zero);
  Value* of_minus_one = ir_.CreateSelect(odd, minus_one, one);
  Value* other = ir_.CreateSelect(ir_.CreateICmpEQ(base, minus_one), of_minus_one, zero);
  Value* inverse = ir_.CreateSelect(ir_.CreateICmpEQ(base, one), one, other);
  return ir_.CreateSelect(ir_.CreateICmpSLT(exponent, zero), inverse, result);
}

Value* ValueBuilder::Math(Intrinsic intrinsic, DType type, const std::vector<Value*>& args) {
  if (IsHalf(type)) {
    std::vector<Value*> wide;
    for (Value* a : args) wide.push_back(Widen(type, a));
    Value* result = Math(intrinsic, Wide(type), wide);
    return result && result->getType()->getScalarType()->isFloatTy() ? Narrow(type, result)
                                                                     : result;
  }
  Value* v = args.at(0);
  switch (intrinsic) {
    case Intrinsic::kFma:
      if (!target_.HasFma()) return SoftFma(v, args.at(1), args.at(2));
      return ir_.CreateIntrinsic(llvm::Intrinsic::fma, {v->getType()}, {v, args.at(1), args.at(2)});
    case Intrinsic::kSqrt: return Intrinsic1(llvm::Intrinsic::sqrt, v);
    case Intrinsic::kAbs:
      if (type.IsFloat()) return Intrinsic1(llvm::Intrinsic::fabs, v);
      if (!type.IsSigned()) return v;
      return ir_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, v, ir_.getFalse());
    case Intrinsic::kFloor:
      return HasRounding() ? Intrinsic1(llvm::Intrinsic::floor, v) : SoftRound(intrinsic, v);
    case Intrinsic::kCeil:
      return HasRounding() ? Intrinsic1(llvm::Intrinsic::ceil, v) : SoftRound(intrinsic, v);
    case Intrinsic::kTrunc:
      return HasRounding() ? Intrinsic1(llvm::Intrinsic::trunc, v) : SoftRound(intrinsic, v);
    case Intrinsic::kRoundEven:
      return HasRounding() ? Intrinsic1(llvm::Intrinsic::roundeven, v) : SoftRound(intrinsic, v);
    case Intrinsic::kIsNan: return ir_.CreateFCmpUNO(v, v);
    case Intrinsic::kIsInf:
      return ir_.CreateFCmpOEQ(Intrinsic1(llvm::Intrinsic::fabs, v),
                               llvm::ConstantFP::getInfinity(v->getType()));
    case Intrinsic::kPopCount: return Intrinsic1(llvm::Intrinsic::ctpop, v);
    case Intrinsic::kClz:
      return ir_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, v, ir_.getFalse());
    default: return nullptr;
  }
}

}  // namespace tenon::codegen
