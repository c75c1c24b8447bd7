// expand_math: functions of floats that no machine has an instruction for become arithmetic: exp,
// log, pow, sin, tanh, erf, …, rsqrt, and remainders of floats narrower than f64.
//
// Needs: nothing. Ensures: none of these calls is left, on any number of lanes. A call becomes an
// expression that shares its parts by pointer (a DAG, some 20 to 150 nodes): what follows must not
// walk it as a tree. Why last: the DAGs are what every earlier pass would have to look through.
//
// Error in units of the last place over all arguments (denormals, infinities and NaN as in C), one
// more without fma on the target:
//
//   f32   exp, exp2, log, rsqrt 1.5; log2 2; sigmoid 3; tanh 4; erf 4.5; all others 1
//   f64   rsqrt 1.5; all others 4, sin, cos, tan for |x| < 2^20; pow loses up to 11 bits where its
//         result is very large or small
//   f16, bf16   as f32, rounded once more
//
// Where the call stands under a select that compares its argument with a number, or is of -|x|, exp
// leaves out the ends that the argument cannot come to, and what scaling needs for them.
//
// How: each function reduces its argument to a short interval and evaluates a polynomial (or a
// quotient of two) there; the coefficients are derived by scripts/derive_math.py. Scaling by 2^n is
// integer arithmetic on the exponent field.
#pragma once

#include "loop/pass/pass.h"

namespace tenon {

Module ExpandMath(const Module& module, const PassContext& context);

/// One call expanded; null when it is not one of the above or its type is not a float. `has_fma`:
/// fma is one instruction on the target.
Expr ExpandMathCall(const Call& call, bool has_fma);

}  // namespace tenon
