#include "arith/linear.h"

#include <algorithm>

#include "arith/int_math.h"

namespace tenon {

namespace {

uint64_t Magnitude(int64_t v) {
  return v < 0 ? ~static_cast<uint64_t>(v) + 1 : static_cast<uint64_t>(v);
}

size_t Degree(const Expr& product) {
  size_t degree = 1;
  const Expr* e = &product;
  while (const auto* mul = As<Binary>(*e)) {
    if (mul->op != BinaryOp::kMul) break;
    ++degree;
    e = &mul->lhs;
  }
  return degree;
}

bool TermBefore(const Term& a, const Term& b) {
  if ((a.coefficient < 0) != (b.coefficient < 0)) return b.coefficient < 0;
  size_t da = Degree(a.product), db = Degree(b.product);
  if (da != db) return da > db;
  uint64_t ma = Magnitude(a.coefficient), mb = Magnitude(b.coefficient);
  if (ma != mb) return ma > mb;
  return CompareExpr(a.product, b.product) < 0;
}

// So that negation and division of coefficients never overflow.
bool Fits(int64_t coefficient) { return coefficient != std::numeric_limits<int64_t>::min(); }

// Adds a term to an unordered sum; false on overflow.
bool Accumulate(ExprIds& ids, std::vector<Term>* terms, const Term& term, int64_t coefficient) {
  if (!Fits(coefficient)) return false;
  const ExprIds::Id id = term.id ? term.id : ids.Of(term.product);
  for (Term& t : *terms) {
    if (!t.id) t.id = ids.Of(t.product);
    if (t.id != id) continue;
    auto sum = CheckedAdd(t.coefficient, coefficient);
    if (!sum || !Fits(*sum)) return false;
    t.coefficient = *sum;
    return true;
  }
  terms->push_back({term.product, coefficient, id});
  return true;
}

// Sums are short, and all but a term or two are in order already: each goes back to its place.
void SortTerms(std::vector<Term>* terms) {
  std::erase_if(*terms, [](const Term& t) { return t.coefficient == 0; });
  for (size_t i = 1; i < terms->size(); ++i) {
    size_t to = i;
    while (to > 0 && TermBefore((*terms)[i], (*terms)[to - 1])) --to;
    const auto begin = terms->begin();
    std::rotate(begin + static_cast<int64_t>(to), begin + static_cast<int64_t>(i),
                begin + static_cast<int64_t>(i) + 1);
  }
}

Expr ScaledProduct(const Expr& product, int64_t coefficient) {
  if (coefficient == 1) return product;
  return Binary::Make(BinaryOp::kMul, product, IndexConst(coefficient));
}

}  // namespace

Linear ConstantSum(int64_t value) {
  Linear out;
  out.constant = value;
  return out;
}

Linear AtomSum(const Expr& atom) {
  Linear out;
  out.terms.push_back({atom, 1});
  return out;
}

std::optional<Linear> Normalize(ExprIds& ids, Linear sum) {
  Linear out = ConstantSum(sum.constant);
  for (const Term& t : sum.terms) {
    if (!Accumulate(ids, &out.terms, t, t.coefficient)) return std::nullopt;
  }
  SortTerms(&out.terms);
  return out;
}

std::optional<Linear> AddScaled(ExprIds& ids, Linear a, const Linear& b, int64_t scale) {
  auto constant = CheckedMul(b.constant, scale);
  if (constant) constant = CheckedAdd(a.constant, *constant);
  if (!constant) return std::nullopt;
  a.constant = *constant;
  if (b.terms.empty()) return a;
  for (const Term& t : b.terms) {
    auto coefficient = CheckedMul(t.coefficient, scale);
    if (!coefficient || !Accumulate(ids, &a.terms, t, *coefficient)) return std::nullopt;
  }
  SortTerms(&a.terms);
  return a;
}

std::optional<Linear> Scale(Linear a, int64_t scale) {
  if (scale == 0) return ConstantSum(0);
  if (scale == 1) return a;
  auto constant = CheckedMul(a.constant, scale);
  if (!constant) return std::nullopt;
  a.constant = *constant;
  for (Term& t : a.terms) {
    auto coefficient = CheckedMul(t.coefficient, scale);
    if (!coefficient || !Fits(*coefficient)) return std::nullopt;
    t.coefficient = *coefficient;
  }
  SortTerms(&a.terms);
  return a;
}

std::optional<Linear> Multiply(ExprIds& ids, const Linear& a, const Linear& b) {
  if (a.IsConstant()) return Scale(b, a.constant);
  if (b.IsConstant()) return Scale(a, b.constant);
  if ((a.terms.size() + 1) * (b.terms.size() + 1) > kMaxTerms) return std::nullopt;
  auto constant = CheckedMul(a.constant, b.constant);
  if (!constant) return std::nullopt;
  Linear out = ConstantSum(*constant);
  auto add = [&](const Term& product, int64_t x, int64_t y) {
    auto c = CheckedMul(x, y);
    return c && (*c == 0 || Accumulate(ids, &out.terms, product, *c));
  };
  for (const Term& x : a.terms) {
    if (!add(x, x.coefficient, b.constant)) return std::nullopt;
    for (const Term& y : b.terms) {
      std::vector<Expr> atoms = ids.FactorsOf(x.product);
      const std::vector<Expr>& more = ids.FactorsOf(y.product);
      atoms.insert(atoms.end(), more.begin(), more.end());
      if (!add({ProductOf(ids, std::move(atoms)), 1}, x.coefficient, y.coefficient))
        return std::nullopt;
    }
  }
  for (const Term& y : b.terms) {
    if (!add(y, y.coefficient, a.constant)) return std::nullopt;
  }
  SortTerms(&out.terms);
  return out;
}

std::vector<Expr> Factors(const Expr& product) {
  std::vector<Expr> out;
  Expr e = product;
  for (const auto* mul = As<Binary>(e); mul && mul->op == BinaryOp::kMul; mul = As<Binary>(e)) {
    out.push_back(mul->rhs);
    e = mul->lhs;
  }
  out.push_back(e);
  std::reverse(out.begin(), out.end());
  return out;
}

namespace {

template <class Multiplied>
Expr InOrder(std::vector<Expr> atoms, Multiplied&& product) {
  if (atoms.empty()) return IndexConst(1);
  std::stable_sort(atoms.begin(), atoms.end(),
                   [](const Expr& a, const Expr& b) { return CompareExpr(a, b) < 0; });
  Expr out = atoms[0];
  for (size_t i = 1; i < atoms.size(); ++i) out = product(out, atoms[i]);
  return out;
}

}  // namespace

Expr ProductOf(std::vector<Expr> atoms) {
  return InOrder(std::move(atoms),
                 [](const Expr& a, const Expr& b) { return Binary::Make(BinaryOp::kMul, a, b); });
}

Expr ProductOf(ExprIds& ids, std::vector<Expr> atoms) {
  return InOrder(std::move(atoms), [&](const Expr& a, const Expr& b) { return ids.Product(a, b); });
}

Expr ToExpr(const Linear& sum) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  int64_t constant = sum.constant;
  Expr out;
  // A sum of negative terms only reads better as `4 - a - b`.
  if (constant > 0 && (sum.terms.empty() || sum.terms[0].coefficient < 0)) {
    out = IndexConst(constant);
    constant = 0;
  }
  for (const Term& t : sum.terms) {
    if (!out) {
      out = ScaledProduct(t.product, t.coefficient);
    } else if (t.coefficient > 0 || t.coefficient == kMin) {
      out = Binary::Make(BinaryOp::kAdd, out, ScaledProduct(t.product, t.coefficient));
    } else {
      out = Binary::Make(BinaryOp::kSub, out, ScaledProduct(t.product, -t.coefficient));
    }
  }
  if (!out) return IndexConst(constant);
  if (constant == 0) return out;
  bool subtract = constant < 0 && constant != kMin;
  return Binary::Make(subtract ? BinaryOp::kSub : BinaryOp::kAdd, out,
                      IndexConst(subtract ? -constant : constant));
}

int64_t CoefficientGcd(const Linear& sum) {
  int64_t g = 0;
  for (const Term& t : sum.terms) g = GcdInt(g, t.coefficient);
  return g;
}

}  // namespace tenon
