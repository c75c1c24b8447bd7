// IEEE half-precision numbers, which C++20 has no type for.
#pragma once

#include <cstdint>

namespace tenon {

/// The bits of a number that is one: rounded already, and in range, infinite or NaN.
uint16_t HalfBits(double value);
double HalfValue(uint16_t bits);

}  // namespace tenon
