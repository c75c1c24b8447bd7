// What holds where code stands, told to an analyzer.
#pragma once

#include <vector>

#include "arith/analyzer.h"
#include "loop/func.h"

namespace tenon {

/// The ranges and steps of the function's dims.
void Learn(const PrimFunc& func, Analyzer* analyzer);
/// The range of the loop's variable, in its body.
void Learn(const For& loop, Analyzer* analyzer);
/// The range and divisibility of a value, of the variable that has it, also where memory says it.
void LearnValue(const Var& var, const Expr& value, Analyzer* analyzer);
/// What holds at the end of a path of statements, outermost first: ranges of loops, values of lets,
/// conditions of ifs whose first branch the path takes.
void Learn(const std::vector<Stmt>& path, Analyzer* analyzer);

}  // namespace tenon
