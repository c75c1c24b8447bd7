// Arithmetic of constant intervals (Interval of analyzer.h). Every result contains all values that
// the operation can give on members of its operands; sides that overflow become infinite.
#pragma once

#include "arith/analyzer.h"

namespace tenon {

Interval Point(int64_t value);
/// Everything a lane of the type can hold. u64 counts as unbounded both ways: constants hold its
/// bits as int64.
Interval TypeRange(DType type);

Interval Add(Interval a, Interval b);
Interval Sub(Interval a, Interval b);
Interval Neg(Interval a);
Interval Mul(Interval a, Interval b);
/// Floor division and modulo (index); a divisor of zero is taken not to happen.
Interval FloorDiv(Interval a, Interval b);
Interval FloorMod(Interval a, Interval b);
/// Truncating division and remainder (data integers), x / 0 = 0 and x % 0 = 0 included.
Interval TruncDiv(Interval a, Interval b);
Interval TruncMod(Interval a, Interval b);
Interval Min(Interval a, Interval b);
Interval Max(Interval a, Interval b);
Interval Hull(Interval a, Interval b);
Interval Intersect(Interval a, Interval b);
bool Contains(Interval outer, Interval inner);

}  // namespace tenon
