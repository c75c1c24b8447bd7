// When do the values of some expressions fix the values of loop variables? (Which is to say: do
// different iterations touch different elements?)
//
// Index expressions are read as mixed-radix numbers. In c1*a1 + c2*a2 + … + d, with the terms in
// order of falling |ci|, the leading a1 is fixed by the value of the sum when |c1| exceeds the span
// of everything after it; then a2 by what is left, and so on. The digits ai are variables, or
// quotients and remainders of sums (x / 4, x % 4): a sum x is fixed once x % m and x / m are. This
// covers whatever splits, fusions and reorderings make of an injective index map.
#pragma once

#include <unordered_set>
#include <vector>

#include "arith/analyzer.h"

namespace tenon::primitive {

/// coefficient * digit; the digit mentions some of the variables in question and is no sum.
struct Term {
  int64_t coefficient;
  Expr digit;
};

/// The terms of an expression that mention any of `vars`, equal digits joined; the rest is left
/// out.
std::vector<Term> TermsOf(const Expr& e, const std::unordered_set<const VarNode*>& vars);

/// `value + t` is known, for some unknown t in [0, slack].
struct KnownSum {
  Expr value;
  int64_t slack = 0;
};

/// Those of `unknown` whose values are fixed by the known sums, given all other variables. The
/// analyzer knows the ranges.
std::unordered_set<const VarNode*> FixedVars(const std::vector<KnownSum>& known,
                                             const std::unordered_set<const VarNode*>& unknown,
                                             Analyzer* analyzer);

/// True when indices[d] + [0, extents[d]), over all dimensions d, take every point of a box (and
/// nothing else) while the variables run over the constant ranges [0, n) that the analyzer knows
/// for them, independently of each other.
bool FillsBox(const std::vector<Expr>& indices, const std::vector<Expr>& extents,
              const std::unordered_set<const VarNode*>& vars, Analyzer* analyzer);

}  // namespace tenon::primitive
