// Integer arithmetic that notices overflow. A nullopt means: give up, never: wrap.
#pragma once

#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>

namespace tenon {

inline std::optional<int64_t> CheckedAdd(int64_t a, int64_t b) {
  int64_t r;
  return __builtin_add_overflow(a, b, &r) ? std::nullopt : std::optional<int64_t>(r);
}
inline std::optional<int64_t> CheckedSub(int64_t a, int64_t b) {
  int64_t r;
  return __builtin_sub_overflow(a, b, &r) ? std::nullopt : std::optional<int64_t>(r);
}
inline std::optional<int64_t> CheckedMul(int64_t a, int64_t b) {
  int64_t r;
  return __builtin_mul_overflow(a, b, &r) ? std::nullopt : std::optional<int64_t>(r);
}

/// Quotient rounded towards minus infinity. b != 0, and not (INT64_MIN, -1).
inline int64_t FloorDivInt(int64_t a, int64_t b) {
  int64_t q = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;
}
/// a - b * FloorDivInt(a, b): has the sign of b. b != 0.
inline int64_t FloorModInt(int64_t a, int64_t b) {
  if (b == -1) return 0;
  int64_t r = a % b;
  return (r != 0 && ((r < 0) != (b < 0))) ? r + b : r;
}

/// Greatest common divisor of magnitudes; Gcd(0, 0) = 0; 1 where a magnitude does not fit.
inline int64_t GcdInt(int64_t a, int64_t b) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  if (a == kMin || b == kMin) return 1;
  return std::gcd(a, b);
}

}  // namespace tenon
