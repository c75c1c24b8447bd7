// An f32 number as a sum of two bf16 numbers, high and low, so that units which multiply bf16 and
// add up in f32 give a product that is as good as one of f32:
//
//   x · y = hi(x) · hi(y) + hi(x) · lo(y) + lo(x) · hi(y) + …
//
// What is left out, lo(x) · lo(y), is at most 2^-18 of x · y, as is what rounding the low parts
// loses. An infinity or NaN is all low: its product with the other's high part is what it would be,
// and nothing else has a part in it. (As a high part it would meet low parts of either sign, and
// inf - inf is no number.)
#pragma once

#include "ir/expr.h"

namespace tenon::ops {

/// The largest finite bf16: larger numbers of f32 would round to infinity.
inline constexpr double kLargestBFloat16 = 3.3895313892515355e38;

/// Both bf16, of an f32.
Expr HighPart(const Expr& x);
Expr LowPart(const Expr& x);

}  // namespace tenon::ops
