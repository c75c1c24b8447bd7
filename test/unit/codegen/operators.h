// Operators and the types that they are for.
#pragma once

#include <vector>

#include "ir/expr.h"

namespace tenon::test {

inline const std::vector<DType>& DataTypes() {
  static const std::vector<DType> types = {DType::Int(8),
                                           DType::Int(16),
                                           DType::Int(32),
                                           DType::Int(64),
                                           DType::UInt(8),
                                           DType::UInt(16),
                                           DType::UInt(32),
                                           DType::UInt(64),
                                           DType::Float(16),
                                           DType::BFloat16(),
                                           DType::Float(32),
                                           DType::Float(64),
                                           DType::Bool(),
                                           DType::OfFloat8(Float8::kE3M4),
                                           DType::OfFloat8(Float8::kE4M3Fn),
                                           DType::OfFloat8(Float8::kE5M2),
                                           DType::OfFloat8(Float8::kE4M3Fnuz),
                                           DType::OfFloat8(Float8::kE8M0Fnu)};
  return types;
}

inline constexpr BinaryOp kBinaryOps[] = {
    BinaryOp::kAdd,    BinaryOp::kSub,   BinaryOp::kMul,    BinaryOp::kDiv, BinaryOp::kMod,
    BinaryOp::kMin,    BinaryOp::kMax,   BinaryOp::kEq,     BinaryOp::kNe,  BinaryOp::kLt,
    BinaryOp::kLe,     BinaryOp::kGt,    BinaryOp::kGe,     BinaryOp::kAnd, BinaryOp::kOr,
    BinaryOp::kBitAnd, BinaryOp::kBitOr, BinaryOp::kBitXor, BinaryOp::kShl, BinaryOp::kShr};

/// True where every back end has the operator for the type.
inline bool Applies(BinaryOp op, DType type) {
  const bool logic = op == BinaryOp::kAnd || op == BinaryOp::kOr;
  const bool bits = op == BinaryOp::kBitAnd || op == BinaryOp::kBitOr || op == BinaryOp::kBitXor;
  const bool shift = op == BinaryOp::kShl || op == BinaryOp::kShr;
  if (type.IsBool()) return logic || op == BinaryOp::kEq || op == BinaryOp::kNe;
  if (logic) return false;
  if (type.IsFloat()) return !bits && !shift && op != BinaryOp::kMod;
  return true;
}

}  // namespace tenon::test
