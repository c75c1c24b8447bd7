// Whether an index rises or falls with a loop, and where a remainder is largest.
#pragma once

#include "arith/analyzer.h"

namespace tenon {

/// How an expression changes with a variable.
enum class Trend : uint8_t { kNone, kRises, kFalls, kUnknown };

/// Of what is negated.
Trend Turned(Trend t);
/// Of the sum of two.
Trend Both(Trend a, Trend b);

Trend TrendOf(const Expr& e, const Var& v, Analyzer* analyzer);

/// Where (v + rest) % m, a part of e, is m - 1; null where there is no such part. `exact`: e is
/// largest there where the loop over v gets there, and at an end of the loop elsewhere.
Expr WhereItWraps(const Expr& e, const Var& v, bool* exact, Analyzer* analyzer);

}  // namespace tenon
