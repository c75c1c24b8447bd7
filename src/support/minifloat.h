// Floats of 8 bits and fewer, as OCP's specification of 8-bit floats, IEEE 754's shape of them and
// ml_dtypes have them.
#pragma once

#include <cstdint>

namespace tenon {

/// A format: the sign's bit (none where `bits` is `exponent` alone), `exponent` bits, `mantissa`
/// bits. Numbers round to the nearest, ties to even; exponents alone have ties go up, and neither 0
/// nor negative numbers.
struct Minifloat {
  enum class Special : uint8_t {
    kNone,      // every code is a number
    kInfinity,  // as IEEE 754: the last exponent is infinity and NaN
    kFinite,    // "fn": all ones are NaN
    kZero,      // "fnuz": the code of -0 is NaN
  };
  int bits, exponent, mantissa, bias;
  Special special;

  constexpr bool IsExponent() const { return mantissa == 0; }
  /// The code of the largest number, without a sign.
  int64_t LargestCode() const;
  /// The code of NaN; where there is none, that of -0.
  int64_t NanCode() const;
  double NumberOf(int64_t code) const;
  /// The nearest number, infinity or NaN of the format: what is too large becomes infinity, else
  /// NaN, else the largest.
  double Round(double value) const;
  /// The code of a number that Round gives.
  int64_t CodeOf(double rounded) const;
};

}  // namespace tenon
