// Comparisons of vectors of indices, which are what tails and padding are masked by: where both
// sides are affine in the lane, one 64-bit subtraction and one comparison of narrow lane numbers do
// instead of comparisons of 64-bit lanes.
#include <llvm/IR/Constants.h>

#include "codegen/llvm/expr_emitter.h"

namespace tenon::codegen {

using llvm::Value;

namespace {

// The bits that lane numbers are compared in: as wide as still fill one register, and where there
// are more registers as few as hold the number of lanes.
int LaneBits(int32_t lanes) {
  if (lanes <= 16) return 32;
  if (lanes <= 32) return 16;
  if (lanes <= 255) return 8;
  return lanes <= 65535 ? 16 : 32;
}

}  // namespace

// lane < bound, for each lane; bound is a scalar i64.
Value* ExprEmitter::LanesBelow(Value* bound, int32_t lanes) {
  const DType lane = DType::UInt(LaneBits(lanes));
  Value* low = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, bound, ir_.getInt64(0));
  Value* clamped = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, low,
                                             ir_.getInt64(static_cast<uint64_t>(lanes)));
  Value* narrow = ir_.CreateTrunc(clamped, values_.TypeOf(lane));
  Value* bounds = ir_.CreateVectorSplat(static_cast<unsigned>(lanes), narrow);
  return ir_.CreateICmpULT(values_.Steps(lane, lanes), bounds);
}

Value* ExprEmitter::CompareLanes(const Binary& n) {
  const int32_t lanes = n.dtype.lanes;
  const bool swaps = n.op == BinaryOp::kGt || n.op == BinaryOp::kGe;
  const bool or_equal = n.op == BinaryOp::kLe || n.op == BinaryOp::kGe;
  if (!swaps && !or_equal && n.op != BinaryOp::kLt) return nullptr;
  if (!n.lhs->dtype.IsIndex() || lanes < 2) return nullptr;
  const Affine l = AsAffine(swaps ? n.rhs : n.lhs);
  const Affine r = l.base ? AsAffine(swaps ? n.lhs : n.rhs) : Affine{};
  if (!r.base) return nullptr;
  // l < r exactly when (slope of l - slope of r) · lane < room.
  Value* room = ir_.CreateNSWSub(r.base, l.base);
  Value* one = ir_.getInt64(1);
  switch (l.stride - r.stride) {
    case 0: {
      Value* zero = ir_.getInt64(0);
      Value* holds = or_equal ? ir_.CreateICmpSGE(room, zero) : ir_.CreateICmpSGT(room, zero);
      return ir_.CreateVectorSplat(static_cast<unsigned>(lanes), holds);
    }
    case 1: return LanesBelow(or_equal ? ir_.CreateNSWAdd(room, one) : room, lanes);
    case -1: {
      Value* first = ir_.CreateNSWNeg(room);  // the first lane that holds, or the one before it
      return ir_.CreateNot(LanesBelow(or_equal ? first : ir_.CreateNSWAdd(first, one), lanes));
    }
    default: return nullptr;
  }
}

}  // namespace tenon::codegen
