// Conditions taken apart and put together, and what may be evaluated anywhere.
#pragma once

#include <vector>

#include "ir/expr.h"

namespace tenon {

/// True when evaluating `e` any number of times, or never, makes no difference.
bool IsPure(const Expr& e);

/// The conjuncts of a condition, in order; none for null.
std::vector<Expr> Conjuncts(const Expr& condition);
/// a && b, where either may be null.
Expr AndAlso(const Expr& a, const Expr& b);
/// The conjunction of `conditions`; null when there are none.
Expr Conjunction(const std::vector<Expr>& conditions);

}  // namespace tenon
