// Loops whose bodies divide by sizes that are not known.
#pragma once

#include "arith/analyzer.h"
#include "loop/func.h"

namespace tenon::codegen {

/// The iterations [first, end) of a serial loop, in their order, as two loops: where the body
/// divides the loop's variable by a size that the loop does not change, the outer one runs over the
/// quotients and the inner one over the remainders, and neither is computed any more. Null where
/// the body has no such division; of several sizes the one that serves most is taken, and what is
/// left is there for the next call, on the loops made. `first` and `end` are variables, and
/// `first` is what `facts` know of it.
Stmt SplitAtQuotients(const For& loop, const Var& first, const Var& end, Analyzer* facts);

}  // namespace tenon::codegen
