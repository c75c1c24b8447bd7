// Which digits of a mixed-radix number does its value fix?
//
// The Solver keeps sums that are known, each up to a slack. In a sum, terms are put in order of
// their coefficients; the first is fixed if its coefficient exceeds what all others together can
// make up (their span) and the slack. It is then taken off the sum, and the next is looked at. A
// digit that is x / m or x % m fixes x once both are fixed, so that x may be a sum itself and the
// same is asked of it. Rounds go on until nothing new is fixed. With i, j in 0..4 and 0..8,
//
//   i * 8 + j            8 > 7, the span of j: i is fixed; then j
//   i * 4 + j            4 <= 7: nothing is; i = 0, j = 4 and i = 1, j = 0 touch the same element
//   x = i * 8 + j fused; x / 8 and x % 8 are known: x is fixed, and with it i and j
//
// FillsBox asks the other way around: do the values leave no gap? There the terms are put in order
// of rising coefficients, and each must not exceed what the smaller ones reach, plus one.

#include "schedule/analysis/injective.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "ir/visit.h"

namespace tenon::primitive {

namespace {

void AddTerms(const Expr& e, int64_t scale, const std::unordered_set<const VarNode*>& vars,
              std::vector<Term>* out) {
  if (!UsesAnyVar(e, vars)) return;
  if (const auto* b = As<Binary>(e)) {
    std::optional<int64_t> lhs = AsInt(b->lhs), rhs = AsInt(b->rhs);
    if (b->op == BinaryOp::kAdd || b->op == BinaryOp::kSub) {
      AddTerms(b->lhs, scale, vars, out);
      AddTerms(b->rhs, b->op == BinaryOp::kAdd ? scale : -scale, vars, out);
      return;
    }
    if (b->op == BinaryOp::kMul && rhs) return AddTerms(b->lhs, scale * *rhs, vars, out);
    if (b->op == BinaryOp::kMul && lhs) return AddTerms(b->rhs, scale * *lhs, vars, out);
  }
  if (const auto* u = As<Unary>(e); u != nullptr && u->op == UnaryOp::kNeg) {
    return AddTerms(u->value, -scale, vars, out);
  }
  for (Term& t : *out) {
    if (StructuralEqual(t.digit, e)) {
      t.coefficient += scale;
      return;
    }
  }
  out->push_back({scale, e});
}

}  // namespace

std::vector<Term> TermsOf(const Expr& e, const std::unordered_set<const VarNode*>& vars) {
  std::vector<Term> out;
  AddTerms(e, 1, vars, &out);
  std::erase_if(out, [](const Term& t) { return t.coefficient == 0; });
  return out;
}

namespace {

// A term and how far its digit reaches; a null digit is the slack.
struct SpanTerm {
  int64_t coefficient;
  Expr digit;
  int64_t span;  // -1: unbounded
};

// One question. Every list in sums_ is of terms whose sum is known up to its slack, and stays so
// when a fixed term is taken off; fixed_vars_ and fixed_ only grow, so that rounds end.
class Solver {
 public:
  Solver(const std::unordered_set<const VarNode*>& unknown, Analyzer* analyzer)
      : unknown_(unknown), analyzer_(analyzer) {
    for (const VarNode* v : unknown) {
      if (analyzer->ConstBounds(Expr(v)).IsPoint()) fixed_vars_.insert(v);
    }
  }

  void Know(const KnownSum& sum) {
    std::vector<SpanTerm> terms;
    for (const Term& t : TermsOf(analyzer_->Simplify(sum.value), unknown_)) {
      terms.push_back({t.coefficient, t.digit, SpanOf(t.digit)});
    }
    if (sum.slack > 0) terms.push_back({1, nullptr, sum.slack});
    sums_.push_back(std::move(terms));
  }

  std::unordered_set<const VarNode*> Solve() {
    bool progress = true;
    while (progress) {
      progress = false;
      // Fixing a digit may add a sum, so this goes by index.
      for (size_t i = 0; i < sums_.size(); ++i) progress |= Peel(i);
      progress |= RejoinQuotients();
    }
    return fixed_vars_;
  }

 private:
  int64_t SpanOf(const Expr& digit) {
    Interval bounds = analyzer_->ConstBounds(digit);
    bool finite = bounds.min != Interval::kNegInf && bounds.max != Interval::kPosInf;
    return finite ? bounds.max - bounds.min : -1;
  }

  bool IsFixed(const Expr& e) const {
    if (!UsesAnyVar(e, unknown_)) return true;
    if (const auto* v = As<VarNode>(e)) return fixed_vars_.count(v) != 0;
    return std::any_of(fixed_.begin(), fixed_.end(),
                       [&](const Expr& f) { return StructuralEqual(f, e); });
  }

  // True when the expression is a combination of fixed digits.
  bool IsFixedSum(const Expr& e) {
    std::vector<Term> terms = TermsOf(e, unknown_);
    return std::all_of(terms.begin(), terms.end(), [&](const Term& t) { return IsFixed(t.digit); });
  }

  void Fix(const Expr& digit) {
    if (const auto* v = As<VarNode>(digit)) {
      fixed_vars_.insert(v);
    } else {
      fixed_.push_back(digit);
    }
  }

  bool Peel(size_t index) {
    std::vector<SpanTerm> terms = sums_[index];
    std::erase_if(terms, [&](const SpanTerm& t) { return t.digit && IsFixed(t.digit); });
    std::stable_sort(terms.begin(), terms.end(), [](const SpanTerm& a, const SpanTerm& b) {
      return std::abs(a.coefficient) > std::abs(b.coefficient);
    });
    bool progress = false;
    size_t first = 0;
    for (; first < terms.size() && terms[first].digit; ++first) {
      if (!Dominates(terms, first)) break;
      Fix(terms[first].digit);
      progress = true;
    }
    terms.erase(terms.begin(), terms.begin() + static_cast<ptrdiff_t>(first));
    sums_[index] = std::move(terms);
    return progress;
  }

  static bool Dominates(const std::vector<SpanTerm>& terms, size_t first) {
    int64_t rest = 0;
    for (size_t i = first + 1; i < terms.size(); ++i) {
      int64_t part = 0;
      if (terms[i].span < 0) return false;
      if (__builtin_mul_overflow(std::abs(terms[i].coefficient), terms[i].span, &part))
        return false;
      if (__builtin_add_overflow(rest, part, &rest)) return false;
    }
    return std::abs(terms[first].coefficient) > rest;
  }

  // x is fixed when x % m and x / m are.
  bool RejoinQuotients() {
    for (size_t i = 0; i < fixed_.size(); ++i) {
      const auto* mod = As<Binary>(fixed_[i]);
      if (mod == nullptr || mod->op != BinaryOp::kMod || rejoined_.count(mod) != 0) continue;
      Expr x = mod->lhs;
      if (!IsFixedSum(analyzer_->Simplify(x / mod->rhs))) continue;
      rejoined_.insert(mod);
      Know({x});
      return true;
    }
    return false;
  }

  const std::unordered_set<const VarNode*>& unknown_;
  Analyzer* analyzer_;
  std::vector<std::vector<SpanTerm>> sums_;
  std::vector<Expr> fixed_;
  std::unordered_set<const VarNode*> fixed_vars_;
  std::unordered_set<const Node*> rejoined_;
};

}  // namespace

std::unordered_set<const VarNode*> FixedVars(const std::vector<KnownSum>& known,
                                             const std::unordered_set<const VarNode*>& unknown,
                                             Analyzer* analyzer) {
  Solver solver(unknown, analyzer);
  for (const KnownSum& k : known) solver.Know(k);
  return solver.Solve();
}

namespace {

// (var / low) % modulus; modulus 0: no remainder is taken.
struct Digit {
  const VarNode* var;
  int64_t low, modulus;
};

std::optional<Digit> ReadDigit(const Expr& e) {
  if (const auto* v = As<VarNode>(e)) return Digit{v, 1, 0};
  const auto* b = As<Binary>(e);
  std::optional<int64_t> by = b != nullptr ? AsInt(b->rhs) : std::nullopt;
  if (!by || *by <= 0) return std::nullopt;
  std::optional<Digit> inner = ReadDigit(b->lhs);
  if (!inner || inner->modulus != 0) return std::nullopt;
  if (b->op == BinaryOp::kDiv) return Digit{inner->var, inner->low * *by, 0};
  if (b->op == BinaryOp::kMod) return Digit{inner->var, inner->low, *by};
  return std::nullopt;
}

// Digits of one variable take all combinations of their values when they stand for different places
// of it and the highest place is full.
bool AreIndependent(std::vector<Digit> digits, int64_t extent) {
  if (digits.size() == 1) return true;
  std::sort(digits.begin(), digits.end(),
            [](const Digit& a, const Digit& b) { return a.low < b.low; });
  for (size_t i = 0; i < digits.size(); ++i) {
    const Digit& d = digits[i];
    int64_t end = d.modulus == 0 ? extent : d.low * d.modulus;
    bool fits = extent % d.low == 0 && (d.modulus == 0 || extent % end == 0);
    if (!fits || (i + 1 < digits.size() && (d.modulus == 0 || digits[i + 1].low % end != 0))) {
      return false;
    }
  }
  return true;
}

// sum of terms + [0, extent) leaves no gap.
bool HasNoGap(std::vector<Term> terms, const Expr& extent, Analyzer* analyzer) {
  std::stable_sort(terms.begin(), terms.end(), [](const Term& a, const Term& b) {
    return std::abs(a.coefficient) < std::abs(b.coefficient);
  });
  std::optional<int64_t> reach = AsInt(extent);  // how many neighbours are filled; nothing: unknown
  for (const Term& t : terms) {
    if (std::abs(t.coefficient) != 1 && (!reach || std::abs(t.coefficient) > *reach)) return false;
    Interval bounds = analyzer->ConstBounds(t.digit);
    bool finite = bounds.min != Interval::kNegInf && bounds.max != Interval::kPosInf;
    int64_t more = 0;
    if (!reach || !finite ||
        __builtin_mul_overflow(std::abs(t.coefficient), bounds.max - bounds.min, &more)) {
      reach.reset();
    } else {
      reach = *reach + more;
    }
  }
  return true;
}

}  // namespace

bool FillsBox(const std::vector<Expr>& indices, const std::vector<Expr>& extents,
              const std::unordered_set<const VarNode*>& vars, Analyzer* analyzer) {
  std::map<const VarNode*, std::vector<Digit>> digits;
  for (size_t d = 0; d < indices.size(); ++d) {
    std::vector<Term> terms = TermsOf(analyzer->Simplify(indices[d]), vars);
    for (const Term& t : terms) {
      std::optional<Digit> digit = ReadDigit(t.digit);
      if (!digit || vars.count(digit->var) == 0) return false;
      digits[digit->var].push_back(*digit);
    }
    if (!HasNoGap(std::move(terms), extents[d], analyzer)) return false;
  }
  for (const auto& [var, places] : digits) {
    Interval bounds = analyzer->ConstBounds(Expr(var));
    if (places.size() > 1 && (bounds.min != 0 || bounds.max == Interval::kPosInf)) return false;
    const bool ends = bounds.max != Interval::kPosInf;
    if (!AreIndependent(places, ends ? bounds.max + 1 : bounds.max)) return false;
  }
  return true;
}

}  // namespace tenon::primitive
