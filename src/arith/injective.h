// When do the values of some expressions fix the values of variables? (Which is to say: do
// different iterations touch different elements?)
//
// Index expressions are read as numbers in a mixed radix: a sum of digits times weights, where the
// digits are variables, or quotients and remainders of such sums, and the weights constants or
// sizes that are open. Whatever splits, fusions and reorderings make of an injective index map is
// such a number. What the analyzer has assumed holds in every iteration: a guard that ends a part
// of a sum (an uneven split inside of another) counts.
#pragma once

#include <unordered_set>
#include <vector>

#include "arith/analyzer.h"

namespace tenon {

/// `value + t` is known, for some unknown t in [0, length).
struct KnownSum {
  Expr value;
  Expr length = IndexConst(1);
};

/// Those of `unknown` whose values are fixed by the known sums, given all other variables: where
/// two iterations agree in the sums and the other variables, they agree in these. The analyzer
/// knows the ranges; the guards, and what it assumes besides, hold in every iteration that is in
/// question.
std::unordered_set<const VarNode*> FixedVars(const std::vector<KnownSum>& known,
                                             const std::unordered_set<const VarNode*>& unknown,
                                             const std::vector<Expr>& guards, Analyzer* analyzer);

/// True where FixedVars has all of `wanted`, which are some of `unknown`; asks no more than that
/// needs.
bool AreFixed(const std::unordered_set<const VarNode*>& wanted, const std::vector<KnownSum>& known,
              const std::unordered_set<const VarNode*>& unknown, const std::vector<Expr>& guards,
              Analyzer* analyzer);

/// Whether a quotient or a remainder is part of it.
bool HasDivMod(const Expr& e);

/// The smallest c of which the expressions take v / c or v % c; 0 where they do neither.
int64_t SmallestPart(const std::vector<Expr>& expressions, const VarNode* v);

}  // namespace tenon
