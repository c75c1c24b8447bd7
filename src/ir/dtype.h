// Scalar and vector types of expressions and buffers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "support/minifloat.h"

namespace tenon {

enum class TypeCode : uint8_t {
  kInt,     // two's complement; wraps
  kUInt,    // wraps
  kFloat,   // IEEE 754
  kBFloat,  // bfloat16
  kFloat8,  // 8 bits, of a format that `float8` names
  kBool,    // one bit in an expression, one byte in memory
  kIndex,   // loop variables, dims, subscripts: 64 bits until a pass proves that 32 serve; must not
            // overflow
  kHandle,  // a pointer
  kString,  // text of any length; of tensors of a graph only, nothing computes with it
};

/// The formats of floats of 8 bits, numbered as DLPack has them.
enum class Float8 : uint8_t {
  kNone = 0,
  kE3M4 = 7,
  kE4M3,
  kE4M3B11Fnuz,
  kE4M3Fn,
  kE4M3Fnuz,
  kE5M2,
  kE5M2Fnuz,
  kE8M0Fnu,
};
const Minifloat& FormatOf(Float8 format);

/// A type: what a lane is and how many lanes. `scalable` vectors have vscale × lanes lanes.
struct DType {
  TypeCode code = TypeCode::kInt;
  uint8_t bits = 32;
  int32_t lanes = 1;
  bool scalable = false;
  Float8 float8 = Float8::kNone;

  static constexpr DType Int(int bits) { return {TypeCode::kInt, static_cast<uint8_t>(bits)}; }
  static constexpr DType UInt(int bits) { return {TypeCode::kUInt, static_cast<uint8_t>(bits)}; }
  static constexpr DType Float(int bits) { return {TypeCode::kFloat, static_cast<uint8_t>(bits)}; }
  static constexpr DType BFloat16() { return {TypeCode::kBFloat, 16}; }
  static constexpr DType OfFloat8(Float8 format) {
    return {TypeCode::kFloat8, 8, 1, false, format};
  }
  static constexpr DType Bool() { return {TypeCode::kBool, 1}; }
  static constexpr DType Index() { return {TypeCode::kIndex, 64}; }
  static constexpr DType Handle() { return {TypeCode::kHandle, 64}; }
  static constexpr DType String() { return {TypeCode::kString, 64}; }

  constexpr bool IsFloat() const {
    return code == TypeCode::kFloat || code == TypeCode::kBFloat || IsFloat8();
  }
  constexpr bool IsFloat8() const { return code == TypeCode::kFloat8; }
  constexpr bool IsInt() const { return code == TypeCode::kInt || code == TypeCode::kUInt; }
  constexpr bool IsSigned() const { return code == TypeCode::kInt || code == TypeCode::kIndex; }
  constexpr bool IsIndex() const { return code == TypeCode::kIndex; }
  constexpr bool IsBool() const { return code == TypeCode::kBool; }
  constexpr bool IsHandle() const { return code == TypeCode::kHandle; }
  constexpr bool IsString() const { return code == TypeCode::kString; }
  constexpr bool IsScalar() const { return lanes == 1 && !scalable; }
  constexpr bool IsVector() const { return !IsScalar(); }

  constexpr DType WithLanes(int32_t n, bool is_scalable = false) const {
    return {code, bits, n, is_scalable, float8};
  }
  constexpr DType Element() const { return WithLanes(1); }
  /// Bits of one lane in memory: bool takes 8.
  constexpr int StorageBits() const { return IsBool() ? 8 : bits; }
  /// Bytes of `lanes` lanes in memory, rounded up to whole bytes.
  constexpr int64_t Bytes() const { return (static_cast<int64_t>(StorageBits()) * lanes + 7) / 8; }

  friend constexpr bool operator==(const DType&, const DType&) = default;

  /// "f32", "i64", "u8", "bf16", "f8e4m3fn", "bool", "index", "handle", "f32x16", "f32x[4]"
  /// (scalable), "string". Parse knows all but the last: expressions and buffers have no such type.
  std::string ToString() const;
  static std::optional<DType> Parse(std::string_view text);
};

/// The C-like name used in user messages and signatures: "float32", "int64", "bool",
/// "float8_e4m3fn".
std::string LongName(DType type);
std::optional<DType> ParseLongName(std::string_view name);

}  // namespace tenon
