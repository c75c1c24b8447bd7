// Numbers without sign that stand in the order of any type's elements.
#pragma once

#include "ir/expr.h"

namespace tenon::ops {

/// The type of such numbers for elements of a type.
DType SortKeyType(DType type);

/// An element as such a number: rising, or falling where the largest come first. NaN counts as
/// the largest element of all, and -0 as 0.
Expr SortKeyOf(Expr x, bool largest);

}  // namespace tenon::ops
