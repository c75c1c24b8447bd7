#include "support/minifloat.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon {

static constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
static constexpr double kInfinity = std::numeric_limits<double>::infinity();

static int64_t Bit(int n) { return int64_t{1} << n; }

int64_t Minifloat::LargestCode() const {
  const int64_t last = Bit(exponent + mantissa) - 1;
  if (special == Special::kInfinity) return last - Bit(mantissa);
  return special == Special::kFinite ? last - 1 : last;
}

int64_t Minifloat::NanCode() const {
  if (special == Special::kZero || special == Special::kNone) return Bit(bits - 1);
  return Bit(exponent + mantissa) - 1;
}

double Minifloat::NumberOf(int64_t code) const {
  if (IsExponent())
    return code == NanCode() ? kNan : std::ldexp(1.0, static_cast<int>(code) - bias);
  const int64_t magnitude = code & (Bit(bits - 1) - 1);
  const double sign = code == magnitude ? 1 : -1;
  if (special == Special::kZero && code == NanCode()) return kNan;
  if (magnitude > LargestCode()) {
    const bool infinite = special == Special::kInfinity && magnitude == LargestCode() + 1;
    return infinite ? sign * kInfinity : kNan;
  }
  const int64_t field = magnitude >> mantissa, fraction = magnitude & (Bit(mantissa) - 1);
  const int power = static_cast<int>(std::max<int64_t>(field, 1)) - bias - mantissa;
  const int64_t digits = field > 0 ? fraction + Bit(mantissa) : fraction;
  return sign * std::ldexp(static_cast<double>(digits), power);
}

double Minifloat::Round(double value) const {
  if (std::isnan(value)) return kNan;
  const double largest = NumberOf(LargestCode());
  const double beyond = special == Special::kInfinity ? kInfinity
                        : special == Special::kNone   ? largest
                                                      : kNan;
  if (IsExponent()) {
    if (!(value > 0) || std::isinf(value)) return kNan;
    int power = 0;
    const double half_to_one = std::frexp(value, &power);
    const double rounded = std::ldexp(1.0, std::max(half_to_one < 0.75 ? power - 1 : power, -bias));
    return rounded > largest ? beyond : rounded;
  }
  if (value == 0) return special == Special::kZero ? 0 : value;
  if (std::isinf(value)) return std::copysign(beyond, value);
  int power = 0;
  std::frexp(value, &power);
  const double unit = std::ldexp(1.0, std::max(power - 1, 1 - bias) - mantissa);
  const double rounded = std::nearbyint(value / unit) * unit;
  if (std::fabs(rounded) > largest) return std::copysign(beyond, value);
  return rounded == 0 && special == Special::kZero ? 0 : rounded;
}

int64_t Minifloat::CodeOf(double rounded) const {
  if (std::isnan(rounded)) return NanCode();
  if (IsExponent()) return rounded > 0 ? std::ilogb(rounded) + bias : 0;
  const int64_t sign = std::signbit(rounded) ? Bit(bits - 1) : 0;
  if (std::isinf(rounded)) return sign | (LargestCode() + 1);
  if (rounded == 0) return sign;
  const int power = std::max(std::ilogb(rounded), 1 - bias);
  const auto digits = static_cast<int64_t>(std::ldexp(std::fabs(rounded), mantissa - power));
  // The leading digit, where there is one, carries into the exponent.
  return sign | ((Bit(mantissa) * (power + bias - 1)) + digits);
}

}  // namespace tenon
