// Element types of random networks, and how far apart right computations in them may be.
#pragma once

#include <cstdint>
#include <iterator>

#include "ir/dtype.h"

namespace tenon::fuzz {

/// The numbers of TensorProto.DataType.
enum Elem : int {
  kF32 = 1,
  kU8 = 2,
  kI8 = 3,
  kU16 = 4,
  kI16 = 5,
  kI32 = 6,
  kI64 = 7,
  kBool = 9,
  kF16 = 10,
  kF64 = 11,
  kU32 = 12,
  kU64 = 13,
  kBF16 = 16,
};

/// A set of them: bit e stands for Elem e.
using Types = uint32_t;
constexpr Types Only(Elem e) { return Types{1} << e; }
inline constexpr Types kFloats = Only(kF32) | Only(kF16) | Only(kF64) | Only(kBF16),
                       kSigned = Only(kI8) | Only(kI16) | Only(kI32) | Only(kI64),
                       kUnsigned = Only(kU8) | Only(kU16) | Only(kU32) | Only(kU64),
                       kInts = kSigned | kUnsigned, kNumbers = kFloats | kInts,
                       kAll = kNumbers | Only(kBool), kIeee = kFloats & ~Only(kBF16),
                       kWide = Only(kI32) | Only(kI64) | Only(kU32) | Only(kU64),
                       kBytes = Only(kI8) | Only(kU8), kOldNumbers = kIeee | kWide,
                       kOldAll = kAll & ~Only(kBF16);
constexpr bool In(Types types, Elem e) { return (types & Only(e)) != 0; }

/// What is known of an element type. `unit` is the one table of tolerances: how far apart two right
/// computations of one operation may be, of a result of 1. An operator multiplies it by its weight
/// (Effort) and adds what its operands' errors become; comparisons allow the sum. `exact` is the
/// largest integer up to which sums and products of integers are right in any order, and `most`
/// what magnitudes are kept below.
struct ElemInfo {
  Elem elem;
  const char* name;
  DType dtype;
  double unit, exact, most;
};

inline constexpr ElemInfo kElems[] = {
    {kF32, "float32", DType::Float(32), 1.0 / (1 << 21), 1 << 22, 1e5},
    {kF64, "float64", DType::Float(64), 1e-13, 1e12, 1e8},
    {kF16, "float16", DType::Float(16), 1.0 / (1 << 10), 1 << 11, 2e3},
    {kBF16, "bfloat16", DType::BFloat16(), 1.0 / (1 << 7), 1 << 8, 1e4},
    {kI8, "int8", DType::Int(8), 0, 127, 127},
    {kI16, "int16", DType::Int(16), 0, 32767, 32767},
    {kI32, "int32", DType::Int(32), 0, 2147483647, 2147483647},
    {kI64, "int64", DType::Int(64), 0, 1e15, 1e15},
    {kU8, "uint8", DType::UInt(8), 0, 255, 255},
    {kU16, "uint16", DType::UInt(16), 0, 65535, 65535},
    {kU32, "uint32", DType::UInt(32), 0, 4294967295, 4294967295},
    {kU64, "uint64", DType::UInt(64), 0, 1e15, 1e15},
    {kBool, "bool", DType::Bool(), 0, 1, 1},
};

constexpr const ElemInfo& InfoOf(int elem) {
  for (const ElemInfo& info : kElems) {
    if (info.elem == elem) return info;
  }
  return kElems[0];
}
constexpr bool IsFloat(Elem e) { return In(kFloats, e); }

/// How many units an operation is worth.
using Effort = double;
inline constexpr Effort kMoves = 0,  // the same bits
    kArithmetic = 1,                 // one rounding
    kFormula = 4,                    // a few of them
    kFunction = 8;                   // exp, tanh, … by any approximation in use

}  // namespace tenon::fuzz
