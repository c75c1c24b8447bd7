// Arithmetic of the loop IR in LLVM: every operator with exactly the meaning that ir/expr.h gives
// it (no trap, no undefined result), on scalars and fixed vectors, from instructions that need no
// library.
//
// f16 and bf16 travel as their bits (i16): arithmetic widens to f32, computes, and rounds back, so
// that no target needs a library for them.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "ir/expr.h"
#include "loop/stmt.h"
#include "target/target.h"

namespace tenon::codegen {

class ValueBuilder {
 public:
  ValueBuilder(llvm::IRBuilder<>& ir, const Target& target) : ir_(ir), target_(target) {}

  /// The type of a value in registers.
  llvm::Type* TypeOf(DType type) const;
  /// The type of an element (or of contiguous lanes) in memory: bool takes a byte.
  llvm::Type* MemoryTypeOf(DType type) const;
  /// What an element's address is a multiple of.
  llvm::Align AlignOf(DType type) const;
  /// Between the two; a bool in memory is true when its byte is not zero.
  llvm::Value* FromMemory(DType type, llvm::Value* v);
  llvm::Value* ToMemory(DType type, llvm::Value* v);

  /// Which liberties float operations take from here on.
  void SetFpMode(FpMode mode);

  llvm::Value* FloatConstant(DType type, double value);
  llvm::Value* IntConstant(DType type, int64_t value);
  llvm::Value* Zero(DType type) { return llvm::Constant::getNullValue(TypeOf(type)); }

  llvm::Value* Unary(UnaryOp op, DType type, llvm::Value* v);
  /// `type` is that of the operands. `nonnegative`: both are (for the cheap forms of division).
  llvm::Value* Binary(BinaryOp op, DType type, llvm::Value* l, llvm::Value* r, bool nonnegative);
  llvm::Value* Cast(DType from, DType to, llvm::Value* v);
  /// fma, sqrt, abs, floor, ceil, trunc, round_even, is_nan, is_inf. Null when the target cannot
  /// compute it.
  /// By squaring, wrapping; a negative exponent gives 0, except for 1 and -1.
  llvm::Value* IntegerPow(DType type, llvm::Value* base, llvm::Value* exponent);
  llvm::Value* Math(Intrinsic intrinsic, DType type, const std::vector<llvm::Value*>& args);
  /// min or max of f32 or f64, of which the right one is never NaN.
  llvm::Value* MinMaxOfNumber(BinaryOp op, llvm::Value* l, llvm::Value* r) {
    return FloatMinMax(op == BinaryOp::kMax, l, r, true);
  }
  /// reduce_add, reduce_max, reduce_min of a vector of type `type`; `numbers`: none of it is NaN.
  llvm::Value* Reduce(Intrinsic intrinsic, DType type, llvm::Value* v, bool numbers = false);

  /// 0, 1, …, lanes-1 as integers of the scalar type.
  llvm::Constant* Steps(DType scalar, int32_t lanes);
  /// True where any lane is (scalar bool from a scalar or vector one).
  llvm::Value* Any(llvm::Value* mask);

 private:
  static bool IsHalf(DType type) { return type.IsFloat() && type.bits == 16; }
  static DType Wide(DType half) { return DType::Float(32).WithLanes(half.lanes); }

  // values.cc
  llvm::Value* FloatBinary(BinaryOp op, llvm::Value* l, llvm::Value* r);
  llvm::Value* Remainder(llvm::Value* l, llvm::Value* r);
  llvm::Value* FloatMinMax(bool max, llvm::Value* l, llvm::Value* r, bool number = false);
  llvm::Value* HalfMinMax(bool max, DType type, llvm::Value* l, llvm::Value* r);
  llvm::Value* FloatMinMaxReduce(bool max, llvm::Value* v, bool numbers);
  llvm::Value* IntBinary(BinaryOp op, DType type, llvm::Value* l, llvm::Value* r);
  llvm::Value* IndexDivision(BinaryOp op, llvm::Value* l, llvm::Value* r, bool nonnegative);
  llvm::Value* DataDivision(BinaryOp op, bool is_signed, llvm::Value* l, llvm::Value* r);
  llvm::Value* Shift(BinaryOp op, DType type, llvm::Value* l, llvm::Value* r);
  // math.cc
  llvm::Value* Intrinsic1(llvm::Intrinsic::ID id, llvm::Value* v);
  bool HasRounding() const;
  llvm::Value* RoundByAdding(llvm::Value* magnitude);
  llvm::Value* SoftRound(Intrinsic intrinsic, llvm::Value* v);
  llvm::Value* SoftFma(llvm::Value* a, llvm::Value* b, llvm::Value* c);
  // casts.cc
  llvm::Value* Widen(DType half, llvm::Value* bits);
  llvm::Value* Narrow(DType half, llvm::Value* f32);
  llvm::Value* NarrowToF16(llvm::Value* f32);
  llvm::Value* WidenF16(llvm::Value* bits);
  llvm::Value* RoundToOdd(llvm::Value* f64);
  llvm::Value* FloatToFewBits(DType to, llvm::Value* v);
  llvm::Value* FloatToInt(DType from, DType to, llvm::Value* v);

  llvm::Type* WithLanesOf(llvm::Type* element, llvm::Type* shape) const;
  llvm::Value* Const(llvm::Type* type, double value) { return llvm::ConstantFP::get(type, value); }
  llvm::Value* Bits(llvm::Type* type, uint64_t value) {
    return llvm::ConstantInt::get(type, value);
  }

  llvm::IRBuilder<>& ir_;
  const Target& target_;
};

}  // namespace tenon::codegen
