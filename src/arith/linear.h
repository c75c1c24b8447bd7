// Canonical sums: constant + sum of coefficient * product, over scalar index expressions.
//
// A product is an atom (any expression that is no sum, product or constant) or a left-deep chain of
// multiplications of atoms in canonical order; products of a sum are pairwise different and no
// coefficient is zero or INT64_MIN. Terms stand in the order in which they are printed: positive
// ones first, then by falling degree, by falling coefficient, by CompareExpr.
#pragma once

#include <optional>
#include <vector>

#include "arith/expr_ids.h"

namespace tenon {

struct Term {
  Expr product;
  int64_t coefficient;
  ExprIds::Id id = 0;  // the product's, among the numbers at hand; 0: nobody has looked
};

struct Linear {
  std::vector<Term> terms;
  int64_t constant = 0;

  bool IsConstant() const { return terms.empty(); }
};

/// Sums longer than this are not formed by multiplication.
inline constexpr size_t kMaxTerms = 48;

// Operations give nullopt where a coefficient would overflow (or, for products, the sum become too
// long).
std::optional<Linear> AddScaled(ExprIds& ids, Linear a, const Linear& b, int64_t scale);
std::optional<Linear> Scale(Linear a, int64_t scale);
std::optional<Linear> Multiply(ExprIds& ids, const Linear& a, const Linear& b);

Linear ConstantSum(int64_t value);
Linear AtomSum(const Expr& atom);
/// Puts terms in order and merges equal products.
std::optional<Linear> Normalize(ExprIds& ids, Linear sum);

/// The atoms of a product.
std::vector<Expr> Factors(const Expr& product);
/// The product of atoms, in canonical order; the constant 1 of no atoms.
Expr ProductOf(std::vector<Expr> atoms);
/// The same, one node for equal products.
Expr ProductOf(ExprIds& ids, std::vector<Expr> atoms);

/// The sum that an index expression is, its atoms simplified without facts.
Linear SumOf(const Expr& e);
/// The expression that a comparison of indices says is not positive; nothing where it says more.
std::optional<Expr> NotPositive(const Expr& comparison);
/// The expression of a sum: `a * 4 + b - c + 1`.
Expr ToExpr(const Linear& sum);

/// Greatest common divisor of the coefficients (not the constant); 0 without terms.
int64_t CoefficientGcd(const Linear& sum);

}  // namespace tenon
