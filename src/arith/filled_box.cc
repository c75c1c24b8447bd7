// Three steps. Sums that a guard ends, or that are divided, become variables of their own where
// they take every value from 0 to their end (Join), and variables that are divided become two
// (Part). Then each index must be a sum of digits of variables, (v / low) % modulus, which leaves
// no gap: with the terms in order of rising weights, none exceeds what the smaller ones reach, plus
// one. And digits of one variable must take all combinations. In
//
//   f = y * 24 + x * 2 + r, y in 0..4, x in 0..16, r in 0..2, where x * 2 + r < 24
//   T[f / 12, f % 12], which is T[y * 2 + (x * 2 + r) / 12, (x * 2 + r) % 12]
//
// u = x * 2 + r reaches 32 without a gap and is ended at 24; T[y * 2 + u / 12, u % 12] has the
// digits u / 12 in 0..2 and u % 12, and fills 8 x 12.

#include "arith/filled_box.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "arith/injective.h"
#include "arith/linear.h"
#include "ir/visit.h"

namespace tenon {

namespace {

// (var / low) % modulus; modulus 0: no remainder is taken.
struct Place {
  const VarNode* var;
  int64_t low, modulus;
};

std::optional<Place> ReadPlace(const Expr& e) {
  if (const auto* v = As<VarNode>(e)) return Place{v, 1, 0};
  const auto* b = As<Binary>(e);
  std::optional<int64_t> by = b != nullptr ? AsInt(b->rhs) : std::nullopt;
  if (!by || *by <= 0) return std::nullopt;
  std::optional<Place> inner = ReadPlace(b->lhs);
  if (!inner || inner->modulus != 0) return std::nullopt;
  if (b->op == BinaryOp::kDiv) return Place{inner->var, inner->low * *by, 0};
  if (b->op == BinaryOp::kMod) return Place{inner->var, inner->low, *by};
  return std::nullopt;
}

// Digits of one variable take all combinations of their values when they stand for different places
// of it and the highest place is full.
bool AreIndependent(std::vector<Place> digits, int64_t extent) {
  if (digits.size() == 1) return true;
  std::sort(digits.begin(), digits.end(),
            [](const Place& a, const Place& b) { return a.low < b.low; });
  for (size_t i = 0; i < digits.size(); ++i) {
    const Place& d = digits[i];
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
    Interval bounds = analyzer->ConstBounds(t.product);
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

// One question. vars_ has the variables that run still; what was joined is nowhere any more.
class Filler {
 public:
  Filler(Iterations iterations, const std::vector<Expr>& extents, Analyzer* analyzer)
      : it_(std::move(iterations)), extents_(extents), analyzer_(*analyzer) {
    for (Expr& e : it_.indices) e = analyzer_.Simplify(e);
    for (const auto& [var, range] : it_.domain) vars_.insert(var);
  }

  std::optional<std::vector<ExprInterval>> Run() {
    while (JoinGuard() || Part() || JoinDividend()) continue;
    if (!it_.guards.empty() || !Fills()) return std::nullopt;
    std::vector<ExprInterval> out;
    for (size_t d = 0; d < it_.indices.size(); ++d) {
      ExprInterval box = EvalInterval(it_.indices[d], it_.domain, &analyzer_);
      if (!IsOne(extents_[d])) {
        const Expr last = analyzer_.Simplify(it_.indices[d] + extents_[d] - 1);
        box.max = EvalInterval(last, it_.domain, &analyzer_).max;
      }
      out.push_back(box);
    }
    return out;
  }

 private:
  bool IsOpen(const Expr& e) const { return UsesAnyVar(e, vars_); }

  bool JoinGuard() {
    std::erase_if(it_.guards, [&](const Expr& g) { return analyzer_.CanProve(g); });
    for (size_t i = 0; i < it_.guards.size(); ++i) {
      const auto excess = NotPositive(analyzer_.Simplify(it_.guards[i]));
      if (!excess) continue;
      Linear sum = SumOf(*excess), rest = ConstantSum(sum.constant);
      std::vector<Term> open;
      for (const Term& t : sum.terms) (IsOpen(t.product) ? open : rest.terms).push_back(t);
      const Expr guard = it_.guards[i];
      it_.guards.erase(it_.guards.begin() + static_cast<int64_t>(i));
      Expr end = analyzer_.Simplify(IndexConst(1) - ToExpr(rest));
      DropLow(&open, &end);
      if (Join(open, end)) return true;
      it_.guards.insert(it_.guards.begin() + static_cast<int64_t>(i), guard);
    }
    return false;
  }

  // u * 3 + i < 21 with i in 0..3 is u < 7.
  void DropLow(std::vector<Term>* sum, Expr* end) {
    const auto limit = AsInt(*end);
    for (const Term& unit : std::vector<Term>(*sum)) {
      const int64_t g = unit.coefficient;
      if (!limit || g <= 1 || *limit % g != 0) continue;
      std::vector<Term> high;
      Linear low;
      for (const Term& t : *sum) (t.coefficient % g == 0 ? high : low.terms).push_back(t);
      const Interval range = analyzer_.ConstBounds(ToExpr(low));
      if (range.min < 0 || range.max >= g) continue;
      for (Term& t : high) t.coefficient /= g;
      *sum = std::move(high);
      *end = IndexConst(*limit / g);
      return DropLow(sum, end);
    }
  }

  // A variable of which quotient and remainder are taken becomes two, so that each may be joined
  // with others: (y * 3 + u / 4) / 2 and u % 4.
  bool Part() {
    for (const auto& [var, range] : it_.domain) {
      std::vector<Expr> all = it_.indices;
      all.insert(all.end(), it_.guards.begin(), it_.guards.end());
      const int64_t part = SmallestPart(all, var);
      const auto last = range.max ? AsInt(range.max) : std::nullopt;
      if (part == 0 || !last || !range.min || !IsZero(range.min)) continue;
      if (*last + 1 <= part || (*last + 1) % part != 0) continue;
      const Var quotient = Made(var->name + ".outer", (*last + 1) / part);
      const Var remainder = Made(var->name + ".inner", part);
      const VarMap map{{var, Expr(quotient) * part + Expr(remainder)}};
      for (std::vector<Expr>* list : {&it_.indices, &it_.guards}) {
        for (Expr& e : *list) e = analyzer_.Simplify(Substitute(e, map));
      }
      vars_.erase(var);
      it_.domain.erase(var);
      return true;
    }
    return false;
  }

  Var Made(const std::string& name, int64_t extent) {
    Var out = VarNode::Make(name);
    analyzer_.Bind(out, IndexConst(0), IndexConst(extent));
    it_.domain[out.get()] = {IndexConst(0), IndexConst(extent - 1)};
    vars_.insert(out.get());
    keep_.push_back(out);
    return out;
  }

  // A sum of several variables that is divided.
  bool JoinDividend() {
    for (const Expr& index : it_.indices) {
      for (const Term& t : SumOf(index).terms) {
        const auto* part = As<Binary>(t.product);
        if (!part || (part->op != BinaryOp::kDiv && part->op != BinaryOp::kMod)) continue;
        if (JoinSum(part->lhs)) return true;
        // q + z / m beside z % m are m * q + z in two parts.
        const bool parts = part->op == BinaryOp::kDiv && t.coefficient == 1 && AsInt(part->rhs);
        if (parts && JoinSum((index - t.product) * part->rhs + part->lhs)) return true;
      }
    }
    return false;
  }

  bool JoinSum(const Expr& e) {
    std::vector<Term> open = SumOf(e).terms;
    std::erase_if(open, [&](const Term& t) { return !IsOpen(t.product); });
    return open.size() > 1 && Join(open, nullptr);
  }

  // Makes a variable of a sum that is below `end` (null: as far as it reaches). The sum takes all
  // values up to there, and its variables stand nowhere else.
  bool Join(std::vector<Term> sum, const Expr& end) {
    std::sort(sum.begin(), sum.end(),
              [](const Term& a, const Term& b) { return a.coefficient < b.coefficient; });
    if (sum.empty() || sum[0].coefficient != 1) return false;
    Expr reach = IndexConst(1), rest = IndexConst(0);
    std::unordered_set<const VarNode*> gone;
    for (const Term& t : sum) {
      const auto* var = As<VarNode>(t.product);
      if (!var || !vars_.count(var)) return false;
      const ExprInterval& range = it_.domain[var];
      if (!range.min || !range.max || !IsZero(analyzer_.Simplify(range.min))) return false;
      if (!analyzer_.CanProve(Le(IndexConst(t.coefficient), reach))) return false;
      reach = analyzer_.Simplify(reach + range.max * t.coefficient);
      if (gone.insert(var).second && gone.size() > 1) rest = rest + t.product * t.coefficient;
    }
    Expr extent = !end ? reach : analyzer_.Simplify(Min(end, reach));
    const auto* first = As<VarNode>(sum[0].product);
    Var joined = VarNode::Make(first->name + ".joined");
    analyzer_.Bind(joined, IndexConst(0), extent);
    Iterations next{{}, it_.domain, {}};
    const VarMap map{{first, joined - rest}};
    bool used = false;
    auto rewrite = [&](const std::vector<Expr>& from, std::vector<Expr>* to) {
      for (const Expr& e : from) {
        to->push_back(analyzer_.Simplify(Substitute(e, map)));
        if (UsesAnyVar(to->back(), gone)) return false;
        used |= UsesVar(to->back(), joined.get());
      }
      return true;
    };
    if (!rewrite(it_.indices, &next.indices) || !rewrite(it_.guards, &next.guards)) return false;
    // What chooses nothing must run at all.
    if (!used && !analyzer_.CanProve(Ge(extent, IndexConst(1)))) return false;
    for (const VarNode* v : gone) next.domain.erase(v), vars_.erase(v);
    next.domain[joined.get()] = {IndexConst(0), analyzer_.Simplify(extent - 1)};
    vars_.insert(joined.get());
    keep_.push_back(joined);
    it_ = std::move(next);
    return true;
  }

  bool Fills() {
    std::map<const VarNode*, std::vector<Place>> digits;
    for (size_t d = 0; d < it_.indices.size(); ++d) {
      std::vector<Term> terms = SumOf(it_.indices[d]).terms;
      std::erase_if(terms, [&](const Term& t) { return !IsOpen(t.product); });
      for (const Term& t : terms) {
        std::optional<Place> digit = ReadPlace(t.product);
        if (!digit || vars_.count(digit->var) == 0) return false;
        digits[digit->var].push_back(*digit);
      }
      if (!HasNoGap(std::move(terms), extents_[d], &analyzer_)) return false;
    }
    for (const auto& [var, places] : digits) {
      Interval bounds = analyzer_.ConstBounds(Expr(var));
      if (places.size() > 1 && (bounds.min != 0 || bounds.max == Interval::kPosInf)) return false;
      const bool ends = bounds.max != Interval::kPosInf;
      if (!AreIndependent(places, ends ? bounds.max + 1 : bounds.max)) return false;
    }
    return true;
  }

  Iterations it_;
  const std::vector<Expr>& extents_;
  Analyzer& analyzer_;
  std::unordered_set<const VarNode*> vars_;
  std::vector<Var> keep_;
};

}  // namespace

std::optional<std::vector<ExprInterval>> FilledBox(Iterations iterations,
                                                   const std::vector<Expr>& extents,
                                                   Analyzer* analyzer) {
  return Filler(std::move(iterations), extents, analyzer).Run();
}

}  // namespace tenon
