// The remainder of f64, which no instruction gives and libm is not linked for. In an object of its
// own: a library whose code takes none leaves it in the archive.
#include <stdint.h>
#include <string.h>

#include "tenon/kernel_abi.h"

namespace {

constexpr int kMantissaBits = 52;
constexpr uint64_t kHidden = uint64_t{1} << kMantissaBits;
constexpr uint64_t kSign = uint64_t{1} << 63;
constexpr uint64_t kInfinity = uint64_t{0x7ff} << kMantissaBits;

uint64_t BitsOf(double value) {
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
double FromBits(uint64_t bits) {
  double value = 0;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// A magnitude is whole * 2^(power - 1075); a subnormal number's power is that of the least normal.
int PowerOf(uint64_t magnitude) {
  const int field = static_cast<int>(magnitude >> kMantissaBits);
  return field == 0 ? 1 : field;
}
uint64_t WholeOf(uint64_t magnitude) {
  const uint64_t fraction = magnitude & (kHidden - 1);
  return magnitude >= kHidden ? fraction | kHidden : fraction;
}

}  // namespace

// Long division: whole numbers below 2^53 leave room for 11 bits of the quotient a step.
extern "C" double tn_core_remainder_f64(double x, double y) {
  const uint64_t sign = BitsOf(x) & kSign;
  const uint64_t a = BitsOf(x) & ~kSign, b = BitsOf(y) & ~kSign;
  if (b == 0 || a >= kInfinity || b > kInfinity) return (x * y) / (x * y);
  if (a < b) return x;
  const uint64_t divisor = WholeOf(b);
  constexpr int kStep = 11;
  uint64_t rest = WholeOf(a) % divisor;
  for (int left = PowerOf(a) - PowerOf(b); left > 0 && rest != 0; left -= kStep) {
    rest = (rest << (left < kStep ? left : kStep)) % divisor;
  }
  if (rest == 0) return FromBits(sign);
  // As many steps to the left as it takes to be normal, or as the exponent has.
  const int most = PowerOf(b) - 1, wanted = __builtin_clzll(rest) - (63 - kMantissaBits);
  const int shift = wanted < most ? wanted : most;
  return FromBits(sign |
                  ((rest << shift) + (static_cast<uint64_t>(most - shift) << kMantissaBits)));
}
