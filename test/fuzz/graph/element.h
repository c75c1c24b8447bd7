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
  kF8E4M3FN = 17,
  kF8E4M3FNUZ = 18,
  kF8E5M2 = 19,
  kF8E5M2FNUZ = 20,
  kU4 = 21,
  kI4 = 22,
  kF4E2M1 = 23,
  kF8E8M0 = 24,
  kU2 = 25,
  kI2 = 26,
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
                       kOldAll = kAll & ~Only(kBF16),
                       kF8 =
                           Only(kF8E4M3FN) | Only(kF8E4M3FNUZ) | Only(kF8E5M2) | Only(kF8E5M2FNUZ),
                       kFewBits = Only(kU4) | Only(kI4) | Only(kU2) | Only(kI2),
                       // What is moved, cast and quantised, and not computed with.
    kStored = kF8 | kFewBits | Only(kF4E2M1) | Only(kF8E8M0), kAny = kAll | kStored;
constexpr bool In(Types types, Elem e) { return (types & Only(e)) != 0; }

/// What is known of an element type. `unit` is the one table of tolerances: how far apart two right
/// computations of one operation may be, of a result of 1. An operator multiplies it by its weight
/// (Effort) and adds what its operands' errors become; comparisons allow the sum. `exact` is the
/// largest integer up to which sums and products of integers are right in any order, and `most`
/// what magnitudes are kept below. `least` is the least of what is drawn. Elements of fewer than 8
/// bits lie `packed` in a byte of a file and one in a byte of a call, those of float4e2m1 as their
/// bits, which is what stands for their values here.
struct ElemInfo {
  Elem elem;
  const char* name;
  DType dtype;
  double unit, exact, most, least = -4;
  int64_t since = 1;  // the set from which on they are known
  int packed = 1;
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
    {kU8, "uint8", DType::UInt(8), 0, 255, 255, 0},
    {kU16, "uint16", DType::UInt(16), 0, 65535, 65535, 0},
    {kU32, "uint32", DType::UInt(32), 0, 4294967295, 4294967295, 0},
    {kU64, "uint64", DType::UInt(64), 0, 1e15, 1e15, 0},
    {kBool, "bool", DType::Bool(), 0, 1, 1, 0},
    {kF8E4M3FN, "float8e4m3fn", DType::OfFloat8(Float8::kE4M3Fn), 0, 16, 16, -4, 21},
    {kF8E4M3FNUZ, "float8e4m3fnuz", DType::OfFloat8(Float8::kE4M3Fnuz), 0, 16, 16, -4, 21},
    {kF8E5M2, "float8e5m2", DType::OfFloat8(Float8::kE5M2), 0, 8, 8, -4, 21},
    {kF8E5M2FNUZ, "float8e5m2fnuz", DType::OfFloat8(Float8::kE5M2Fnuz), 0, 8, 8, -4, 21},
    {kU4, "uint4", DType::UInt(8), 0, 15, 15, 0, 21, 2},
    {kI4, "int4", DType::Int(8), 0, 7, 7, -8, 21, 2},
    {kF4E2M1, "float4e2m1", DType::UInt(8), 0, 15, 15, 0, 23, 2},
    {kF8E8M0, "float8e8m0", DType::OfFloat8(Float8::kE8M0Fnu), 0, 2, 2, 1, 24},
    {kU2, "uint2", DType::UInt(8), 0, 3, 3, 0, 25, 4},
    {kI2, "int2", DType::Int(8), 0, 1, 1, -2, 25, 4},
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
