#include "support/half.h"

#include <cmath>
#include <limits>

namespace tenon {

uint16_t HalfBits(double value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double a = std::fabs(value);
  if (std::isnan(a)) return static_cast<uint16_t>(sign | 0x7E00);
  if (std::isinf(a)) return static_cast<uint16_t>(sign | 0x7C00);
  // Below the least normal number the bits count multiples of the least of all.
  if (a < 0x1p-14) return static_cast<uint16_t>(sign | static_cast<uint16_t>(a * 0x1p24));
  int exponent;
  const double mantissa = std::frexp(a, &exponent);  // in [½, 1)
  return static_cast<uint16_t>(sign | ((exponent + 14) << 10) |
                               static_cast<uint16_t>((mantissa - 0.5) * 0x1p11));
}

double HalfValue(uint16_t bits) {
  const double sign = bits & 0x8000 ? -1 : 1;
  const int exponent = (bits >> 10) & 31;
  const int mantissa = bits & 1023;
  if (exponent == 31) return mantissa ? std::numeric_limits<double>::quiet_NaN() : sign * HUGE_VAL;
  if (exponent == 0) return sign * mantissa * 0x1p-24;
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

}  // namespace tenon
