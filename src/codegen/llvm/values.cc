// Scalar and vector arithmetic in LLVM, meaning what the IR means.
//
// As in C, the machine's operators are not ours at the edges, and here each edge costs
// instructions, so it is taken only where facts do not rule it out. Division of an index floors:
//
//   a / b, neither negative      udiv
//   else                         sdiv, less one where the signs differ and a rest is left
//
// with the divisor replaced by 1 where the machine would trap (passes compute a quotient ahead of
// the loop that might not need it). min and max must give the number where one side is NaN: where a
// side is known to be one, that is one instruction; else a select. Reductions are trees, in the
// order that the interpreter has.

#include "codegen/llvm/values.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>

#include "support/check.h"

namespace tenon::codegen {

using llvm::Value;

llvm::Type* ValueBuilder::TypeOf(DType type) const {
  llvm::Type* t = nullptr;
  switch (type.code) {
    case TypeCode::kInt:
    case TypeCode::kUInt: t = ir_.getIntNTy(type.bits); break;
    case TypeCode::kFloat:
      t = type.bits == 64   ? ir_.getDoubleTy()
          : type.bits == 32 ? ir_.getFloatTy()
                            : ir_.getInt16Ty();
      break;
    case TypeCode::kBFloat: t = ir_.getInt16Ty(); break;
    case TypeCode::kFloat8: t = ir_.getInt8Ty(); break;
    case TypeCode::kBool: t = ir_.getInt1Ty(); break;
    case TypeCode::kIndex: t = ir_.getInt64Ty(); break;
    case TypeCode::kHandle: t = ir_.getPtrTy(); break;
    case TypeCode::kString: TN_UNREACHABLE();
  }
  return type.IsVector() ? llvm::FixedVectorType::get(t, type.lanes) : t;
}

llvm::Type* ValueBuilder::MemoryTypeOf(DType type) const {
  return TypeOf(type.IsBool() ? DType::UInt(8).WithLanes(type.lanes) : type);
}

llvm::Align ValueBuilder::AlignOf(DType type) const {
  const int64_t bytes = type.IsHandle() ? target_.PointerBits() / 8 : type.Element().Bytes();
  return llvm::Align(static_cast<uint64_t>(bytes));
}

Value* ValueBuilder::FromMemory(DType type, Value* v) {
  return type.IsBool() ? ir_.CreateIsNotNull(v) : v;
}

Value* ValueBuilder::ToMemory(DType type, Value* v) {
  return type.IsBool() ? ir_.CreateZExt(v, MemoryTypeOf(type)) : v;
}

llvm::Type* ValueBuilder::WithLanesOf(llvm::Type* element, llvm::Type* shape) const {
  auto* v = llvm::dyn_cast<llvm::FixedVectorType>(shape);
  return v ? llvm::FixedVectorType::get(element, v->getNumElements()) : element;
}

void ValueBuilder::SetFpMode(FpMode mode) {
  llvm::FastMathFlags flags;
  flags.setAllowContract(mode != FpMode::kStrict);
  flags.setAllowReassoc(mode == FpMode::kReassoc);
  ir_.setFastMathFlags(flags);
}

Value* ValueBuilder::FloatConstant(DType type, double value) {
  if (type.IsFloat8()) {
    const int64_t code = FormatOf(type.float8).CodeOf(value);
    return llvm::ConstantInt::get(TypeOf(type), static_cast<uint64_t>(code));
  }
  if (!IsHalf(type)) return llvm::ConstantFP::get(TypeOf(type), value);
  llvm::APFloat f(value);
  bool inexact = false;
  f.convert(type.code == TypeCode::kBFloat ? llvm::APFloat::BFloat() : llvm::APFloat::IEEEhalf(),
            llvm::APFloat::rmNearestTiesToEven, &inexact);
  return llvm::ConstantInt::get(TypeOf(type), f.bitcastToAPInt());
}

Value* ValueBuilder::IntConstant(DType type, int64_t value) {
  return llvm::ConstantInt::get(TypeOf(type), static_cast<uint64_t>(value), type.IsSigned());
}

llvm::Constant* ValueBuilder::Steps(DType scalar, int32_t lanes) {
  std::vector<llvm::Constant*> steps;
  for (int32_t i = 0; i < lanes; ++i) {
    steps.push_back(llvm::ConstantInt::get(TypeOf(scalar), static_cast<uint64_t>(i)));
  }
  return lanes == 1 ? steps[0] : llvm::ConstantVector::get(steps);
}

Value* ValueBuilder::Any(Value* mask) {
  return mask->getType()->isVectorTy() ? ir_.CreateOrReduce(mask) : mask;
}

Value* ValueBuilder::Unary(UnaryOp op, DType type, Value* v) {
  if (IsHalf(type)) {
    TN_CHECK(op == UnaryOp::kNeg);
    return ir_.CreateXor(v, Bits(v->getType(), 0x8000));
  }
  switch (op) {
    case UnaryOp::kNeg:
      if (type.IsFloat()) return ir_.CreateFNeg(v);
      return type.IsIndex() ? ir_.CreateNSWNeg(v) : ir_.CreateNeg(v);
    case UnaryOp::kNot:
    case UnaryOp::kBitNot: return ir_.CreateNot(v);
  }
  TN_UNREACHABLE();
}

Value* ValueBuilder::Binary(BinaryOp op, DType type, Value* l, Value* r, bool nonnegative) {
  if (IsHalf(type)) {
    const bool picks = op == BinaryOp::kMin || op == BinaryOp::kMax;
    if (picks && !type.IsVector()) return HalfMinMax(op == BinaryOp::kMax, type, l, r);
    Value* wide = FloatBinary(op, Widen(type, l), Widen(type, r));
    return Info(op).is_comparison || wide == nullptr ? wide : Narrow(type, wide);
  }
  if (type.IsFloat()) return FloatBinary(op, l, r);
  if (type.IsIndex()) {
    switch (op) {
      case BinaryOp::kAdd: return ir_.CreateAdd(l, r, "", nonnegative, true);
      case BinaryOp::kSub: return ir_.CreateNSWSub(l, r);
      case BinaryOp::kMul: return ir_.CreateMul(l, r, "", nonnegative, true);
      case BinaryOp::kDiv:
      case BinaryOp::kMod: return IndexDivision(op, l, r, nonnegative);
      default: break;
    }
  }
  return IntBinary(op, type, l, r);
}

// Of f64, lane by lane, by the runtime core; narrower ones were expanded (expand_math).
Value* ValueBuilder::Remainder(Value* l, Value* r) {
  llvm::Type* type = l->getType();
  if (!type->getScalarType()->isDoubleTy() || llvm::isa<llvm::ScalableVectorType>(type)) {
    return nullptr;
  }
  llvm::FunctionCallee callee = ir_.GetInsertBlock()->getModule()->getOrInsertFunction(
      "tn_core_remainder_f64", ir_.getDoubleTy(), ir_.getDoubleTy(), ir_.getDoubleTy());
  auto* f = llvm::cast<llvm::Function>(callee.getCallee());
  f->setVisibility(llvm::GlobalValue::HiddenVisibility);
  f->setDSOLocal(true);
  f->setDoesNotThrow();
  f->setWillReturn();
  f->setDoesNotAccessMemory();
  const auto* lanes = llvm::dyn_cast<llvm::FixedVectorType>(type);
  if (!lanes) return ir_.CreateCall(callee, {l, r});
  Value* out = llvm::PoisonValue::get(type);
  for (uint64_t i = 0; i < lanes->getNumElements(); ++i) {
    Value* lane =
        ir_.CreateCall(callee, {ir_.CreateExtractElement(l, i), ir_.CreateExtractElement(r, i)});
    out = ir_.CreateInsertElement(out, lane, i);
  }
  return out;
}

// Min and Max give the other operand where one is NaN: minnum. Where a side is a number LLVM sees
// that and emits one instruction.
Value* ValueBuilder::FloatBinary(BinaryOp op, Value* l, Value* r) {
  switch (op) {
    case BinaryOp::kAdd: return ir_.CreateFAdd(l, r);
    case BinaryOp::kSub: return ir_.CreateFSub(l, r);
    case BinaryOp::kMul: return ir_.CreateFMul(l, r);
    case BinaryOp::kDiv: return ir_.CreateFDiv(l, r);
    case BinaryOp::kMod: return Remainder(l, r);
    case BinaryOp::kMin:
    case BinaryOp::kMax: return FloatMinMax(op == BinaryOp::kMax, l, r);
    case BinaryOp::kEq: return ir_.CreateFCmpOEQ(l, r);
    case BinaryOp::kNe: return ir_.CreateFCmpUNE(l, r);
    case BinaryOp::kLt: return ir_.CreateFCmpOLT(l, r);
    case BinaryOp::kLe: return ir_.CreateFCmpOLE(l, r);
    case BinaryOp::kGt: return ir_.CreateFCmpOGT(l, r);
    case BinaryOp::kGe: return ir_.CreateFCmpOGE(l, r);
    case BinaryOp::kAnd:
    case BinaryOp::kOr:
    case BinaryOp::kBitAnd:
    case BinaryOp::kBitOr:
    case BinaryOp::kBitXor:
    case BinaryOp::kShl:
    case BinaryOp::kShr: break;
  }
  TN_UNREACHABLE();
}

// The other operand where one is NaN. Spelled out except where it is an instruction, because LLVM
// calls fminf and fmaxf for llvm.minnum on some types; the select is what x86's min and max do, and
// the test goes where the right side is a number (or known to be one: `number`).
Value* ValueBuilder::FloatMinMax(bool max, Value* l, Value* r, bool number) {
  if (target_.arch() == Arch::kAArch64 || target_.arch() == Arch::kRiscV64)
    return max ? ir_.CreateMaxNum(l, r) : ir_.CreateMinNum(l, r);
  if (llvm::isa<llvm::Constant>(l) && !number) std::swap(l, r);
  Value* takes_left = max ? ir_.CreateFCmpOGT(l, r) : ir_.CreateFCmpOLT(l, r);
  Value* picked = ir_.CreateSelect(takes_left, l, r);
  return number ? picked : ir_.CreateSelect(ir_.CreateFCmpUNO(r, r), l, picked);
}

// On the bits: of a comparison, LLVM makes one of halves, of that llvm.maxnum, and then a call of
// fmaxf, which not every machine that a library goes to has.
Value* ValueBuilder::HalfMinMax(bool max, DType type, Value* l, Value* r) {
  auto magnitude = [&](Value* v) { return ir_.CreateAnd(v, ir_.getInt16(0x7fff)); };
  const uint16_t infinity = type == DType::BFloat16() ? 0x7f80 : 0x7c00;
  auto is_nan = [&](Value* v) { return ir_.CreateICmpUGT(magnitude(v), ir_.getInt16(infinity)); };
  // Integers in the order of the numbers; the two zeros are neighbours.
  auto rank = [&](Value* v) {
    Value* sign = ir_.CreateAShr(v, ir_.getInt16(15));
    return ir_.CreateXor(v, magnitude(sign));
  };
  Value* takes_left =
      max ? ir_.CreateICmpSGT(rank(l), rank(r)) : ir_.CreateICmpSLT(rank(l), rank(r));
  Value* zeros = ir_.CreateICmpEQ(magnitude(ir_.CreateOr(l, r)), ir_.getInt16(0));
  takes_left = ir_.CreateAnd(takes_left, ir_.CreateNot(ir_.CreateOr(zeros, is_nan(l))));
  return ir_.CreateSelect(ir_.CreateOr(takes_left, is_nan(r)), l, r);
}

Value* ValueBuilder::IntBinary(BinaryOp op, DType type, Value* l, Value* r) {
  const bool is_signed = type.IsSigned();
  switch (op) {
    case BinaryOp::kAdd: return ir_.CreateAdd(l, r);
    case BinaryOp::kSub: return ir_.CreateSub(l, r);
    case BinaryOp::kMul: return ir_.CreateMul(l, r);
    case BinaryOp::kDiv:
    case BinaryOp::kMod: return DataDivision(op, is_signed, l, r);
    case BinaryOp::kMin:
      return ir_.CreateBinaryIntrinsic(is_signed ? llvm::Intrinsic::smin : llvm::Intrinsic::umin, l,
                                       r);
    case BinaryOp::kMax:
      return ir_.CreateBinaryIntrinsic(is_signed ? llvm::Intrinsic::smax : llvm::Intrinsic::umax, l,
                                       r);
    case BinaryOp::kEq: return ir_.CreateICmpEQ(l, r);
    case BinaryOp::kNe: return ir_.CreateICmpNE(l, r);
    case BinaryOp::kLt: return is_signed ? ir_.CreateICmpSLT(l, r) : ir_.CreateICmpULT(l, r);
    case BinaryOp::kLe: return is_signed ? ir_.CreateICmpSLE(l, r) : ir_.CreateICmpULE(l, r);
    case BinaryOp::kGt: return is_signed ? ir_.CreateICmpSGT(l, r) : ir_.CreateICmpUGT(l, r);
    case BinaryOp::kGe: return is_signed ? ir_.CreateICmpSGE(l, r) : ir_.CreateICmpUGE(l, r);
    case BinaryOp::kAnd:
    case BinaryOp::kBitAnd: return ir_.CreateAnd(l, r);
    case BinaryOp::kOr:
    case BinaryOp::kBitOr: return ir_.CreateOr(l, r);
    case BinaryOp::kBitXor: return ir_.CreateXor(l, r);
    case BinaryOp::kShl:
    case BinaryOp::kShr: return Shift(op, type, l, r);
  }
  TN_UNREACHABLE();
}

// Floor division and its remainder, which has the divisor's sign. With both sides never negative
// that is the machine's unsigned division, else the truncated result is corrected. A size may be 0
// where no iteration needs the quotient, and passes compute it ahead of the loop all the same: the
// machine must not trap then.
Value* ValueBuilder::IndexDivision(BinaryOp op, Value* l, Value* r, bool nonnegative) {
  const bool is_div = op == BinaryOp::kDiv;
  if (!llvm::isa<llvm::Constant>(r)) {
    Value* is_zero = ir_.CreateICmpEQ(r, llvm::Constant::getNullValue(r->getType()));
    r = ir_.CreateSelect(is_zero, llvm::ConstantInt::get(r->getType(), 1), r);
  }
  if (nonnegative) return is_div ? ir_.CreateUDiv(l, r) : ir_.CreateURem(l, r);
  const llvm::APInt* d = nullptr;
  if (auto* c = llvm::dyn_cast<llvm::ConstantInt>(r)) d = &c->getValue();
  if (d && d->isStrictlyPositive() && d->isPowerOf2()) {
    return is_div ? ir_.CreateAShr(l, Bits(l->getType(), d->logBase2()))
                  : ir_.CreateAnd(l, Bits(l->getType(), d->getZExtValue() - 1));
  }
  Value* rem = ir_.CreateSRem(l, r);
  Value* zero = llvm::Constant::getNullValue(l->getType());
  Value* crosses =
      ir_.CreateICmpSLT(d && d->isStrictlyPositive() ? rem : ir_.CreateXor(rem, r), zero);
  if (!d || !d->isStrictlyPositive()) crosses = ir_.CreateAnd(crosses, ir_.CreateIsNotNull(rem));
  if (!is_div) return ir_.CreateSelect(crosses, ir_.CreateAdd(rem, r), rem);
  Value* quotient = ir_.CreateSDiv(l, r);
  return ir_.CreateSub(quotient, ir_.CreateZExt(crosses, l->getType()));
}

// The divisors on which the machine would trap are replaced by 1, which gives every defined result
// but x / 0 = 0.
Value* ValueBuilder::DataDivision(BinaryOp op, bool is_signed, Value* l, Value* r) {
  llvm::Type* type = l->getType();
  Value* zero = llvm::Constant::getNullValue(type);
  Value* by_zero = ir_.CreateICmpEQ(r, zero);
  Value* bad = by_zero;
  if (is_signed) {
    const unsigned bits = type->getScalarSizeInBits();
    Value* lowest = llvm::ConstantInt::get(type, llvm::APInt::getSignedMinValue(bits));
    Value* overflows = ir_.CreateAnd(ir_.CreateICmpEQ(l, lowest),
                                     ir_.CreateICmpEQ(r, llvm::Constant::getAllOnesValue(type)));
    bad = ir_.CreateOr(bad, overflows);
  }
  Value* divisor = ir_.CreateSelect(bad, Bits(type, 1), r);
  if (op == BinaryOp::kMod) {
    return is_signed ? ir_.CreateSRem(l, divisor) : ir_.CreateURem(l, divisor);
  }
  Value* quotient = is_signed ? ir_.CreateSDiv(l, divisor) : ir_.CreateUDiv(l, divisor);
  return ir_.CreateSelect(by_zero, zero, quotient);
}

// A count of the width or more (as an unsigned number) shifts everything out.
Value* ValueBuilder::Shift(BinaryOp op, DType type, Value* l, Value* r) {
  llvm::Type* t = l->getType();
  const unsigned bits = t->getScalarSizeInBits();
  Value* inside = ir_.CreateICmpULT(r, Bits(t, bits));
  const bool arithmetic = op == BinaryOp::kShr && type.IsSigned();
  Value* count = ir_.CreateSelect(inside, r, Bits(t, arithmetic ? bits - 1 : 0));
  if (arithmetic) return ir_.CreateAShr(l, count);
  Value* shifted = op == BinaryOp::kShl ? ir_.CreateShl(l, count) : ir_.CreateLShr(l, count);
  return ir_.CreateSelect(inside, shifted, llvm::Constant::getNullValue(t));
}

// A tree: the halves against each other, an odd lane against the rest.
Value* ValueBuilder::FloatMinMaxReduce(bool max, Value* v, bool numbers) {
  auto lanes = static_cast<int>(llvm::cast<llvm::FixedVectorType>(v->getType())->getNumElements());
  if (lanes == 1) return ir_.CreateExtractElement(v, uint64_t{0});
  std::vector<int> low, high;
  for (int i = 0; i < lanes / 2; ++i) {
    low.push_back(i);
    high.push_back(lanes / 2 + i);
  }
  Value* halves =
      FloatMinMax(max, ir_.CreateShuffleVector(v, low), ir_.CreateShuffleVector(v, high), numbers);
  Value* rest = FloatMinMaxReduce(max, halves, numbers);
  if (lanes % 2 == 0) return rest;
  Value* last = ir_.CreateExtractElement(v, static_cast<uint64_t>(lanes - 1));
  return FloatMinMax(max, rest, last, numbers);
}

Value* ValueBuilder::Reduce(Intrinsic intrinsic, DType type, Value* v, bool numbers) {
  if (!type.IsVector()) return v;
  if (IsHalf(type)) {
    Value* wide = Reduce(intrinsic, Wide(type), Widen(type, v), numbers);
    return Narrow(type.Element(), wide);
  }
  const bool add = intrinsic == Intrinsic::kReduceAdd, max = intrinsic == Intrinsic::kReduceMax;
  if (type.IsFloat()) {
    if (!add) return FloatMinMaxReduce(max, v, numbers);
    // Any order: a tree of half vectors.
    llvm::IRBuilder<>::FastMathFlagGuard guard(ir_);
    llvm::FastMathFlags flags = ir_.getFastMathFlags();
    flags.setAllowReassoc();
    ir_.setFastMathFlags(flags);
    return ir_.CreateFAddReduce(Const(v->getType()->getScalarType(), -0.0), v);
  }
  if (type.IsBool()) return max ? ir_.CreateOrReduce(v) : ir_.CreateAndReduce(v);
  if (add) return ir_.CreateAddReduce(v);
  return max ? ir_.CreateIntMaxReduce(v, type.IsSigned())
             : ir_.CreateIntMinReduce(v, type.IsSigned());
}

}  // namespace tenon::codegen
