// Which digits of a number in a mixed radix does its value fix?
//
// A Number is a sum of digits times weights that is known, up to what is known of all else. Three
// rules take known numbers apart until nothing new comes of them:
//
//   Divide   in A + B, where all weights of A are multiples of M and B varies by less than M, both
//            are known: what A differs by in two iterations is a multiple of M, and B makes up for
//            less. A number of one digit fixes the digit.
//   Rejoin   x / m with x % m known is as good as x: m * (w * (x / m) + rest) and w * (x % m) make
//            w * x + m * rest.
//   Whole    x / m and x % m are known where x is.
//
// How far B varies is asked of the analyzer, so that guards count. With i, j in 0..4 and 0..8,
//
//   i * 8 + j            8 > 7, the span of j: i is fixed, and j
//   i * 4 + j            4 <= 7: nothing is; i = 0, j = 4 and i = 1, j = 0 touch the same element
//   i * 4 + j            if it is known that j < 4: both
//   x = i * 8 + j fused; x / 8 and x % 8 are known: x is fixed, and with it i and j
//   i * F + r            r < F = (n + 3) / 4, a split in four parts of a size that is open: both

#include "arith/injective.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "arith/int_math.h"
#include "arith/linear.h"
#include "ir/visit.h"

namespace tenon {

namespace {

// weight * value: the value mentions unknown variables, the weight does not.
struct Digit {
  Expr weight, value;
  bool rejoined = false;
};
using Number = std::vector<Digit>;

const Binary* AsDivMod(const Expr& e) {
  const auto* b = As<Binary>(e);
  return b && (b->op == BinaryOp::kDiv || b->op == BinaryOp::kMod) ? b : nullptr;
}

// One question. What is in numbers_ is known; open_ has the variables that are not, and only
// shrinks, as fixed_ only grows.
class Solver {
 public:
  Solver(const std::unordered_set<const VarNode*>& unknown, std::vector<Expr> guards,
         Analyzer* analyzer)
      : open_(unknown), guards_(std::move(guards)), analyzer_(*analyzer) {
    std::erase_if(open_,
                  [&](const VarNode* v) { return analyzer_.ConstBounds(Expr(v)).IsPoint(); });
    FindGuarded();
  }
  ~Solver() {
    for (; !tokens_.empty(); tokens_.pop_back()) analyzer_.Retract(tokens_.back());
  }
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;

  void Know(const KnownSum& sum) {
    Expr value = sum.value;
    if (!IsOne(sum.length)) {
      slacks_.push_back(VarNode::Make("slack"));
      analyzer_.Bind(slacks_.back(), IndexConst(0), sum.length);
      open_.insert(slacks_.back().get());
      value = value + slacks_.back();
    }
    Know(value);
  }

  // A guard that leaves a sum one value tells it: a * 3 + b < 1.
  void KnowPinned() {
    for (const Expr& g : guards_) {
      Number sum = NumberOf(g);
      if (!sum.empty() && VariesByLess(sum, IndexConst(1))) numbers_.push_back(std::move(sum));
    }
  }

  // Those of the variables in question that are open still.
  const std::unordered_set<const VarNode*>& Solve() {
    constexpr int kRounds = 64;
    for (int i = 0; i < kRounds; ++i) {
      bool progress = false;
      // Dividing a number adds some, so this goes by index.
      for (size_t k = 0; k < numbers_.size(); ++k) progress |= Divide(k);
      std::erase_if(numbers_, [](const Number& n) { return n.empty(); });
      if (!progress && !Rejoin() && !TakeParts()) break;
    }
    return open_;
  }

  // What it has found out about expressions, with whatever else is known.
  void AddFound(std::vector<KnownSum>* known) const {
    auto add = [&](const Expr& e) {
      const bool lasts = std::none_of(slacks_.begin(), slacks_.end(),
                                      [&](const Var& v) { return UsesVar(e, v.get()); });
      const bool is_new = std::none_of(known->begin(), known->end(), [&](const KnownSum& k) {
        return IsOne(k.length) && StructuralEqual(k.value, e);
      });
      if (lasts && is_new) known->push_back({e});
    };
    for (const Number& n : numbers_) {
      Expr sum = IndexConst(0);
      for (const Digit& d : n) sum = sum + d.weight * d.value;
      add(sum);
    }
    for (const Expr& e : fixed_) add(e);
  }

 private:
  void Know(const Expr& value) {
    numbers_.push_back(NumberOf(analyzer_.Simplify(value)));
    for (const Expr& part : guarded_) {
      const Number n = numbers_.back();
      const Binary& b = *AsDivMod(part);
      auto whole = std::find_if(n.begin(), n.end(),
                                [&](const Digit& d) { return StructuralEqual(d.value, b.lhs); });
      if (whole == n.end()) continue;
      Number apart = n;
      apart.erase(apart.begin() + (whole - n.begin()));
      Add({Times(whole->weight, b.rhs), b.lhs / b.rhs}, &apart);
      Add({whole->weight, b.lhs % b.rhs}, &apart);
      numbers_.push_back(std::move(apart));
    }
  }

  // Quotients and remainders of variables that the guards are about: a variable is taken apart as
  // they take it.
  void FindGuarded() {
    for (const Expr& g : guards_) {
      for (const Digit& d : NumberOf(g)) {
        const Binary* part = AsDivMod(d.value);
        const bool apart = part && IsA<VarNode>(part->lhs) && !UsesAnyVar(part->rhs, open_);
        if (apart && !Has(guarded_, *part)) guarded_.push_back(d.value);
      }
    }
  }

  static bool Has(const std::vector<Expr>& parts, const Binary& part) {
    return std::any_of(parts.begin(), parts.end(), [&](const Expr& e) {
      return StructuralEqual(AsDivMod(e)->lhs, part.lhs) &&
             StructuralEqual(AsDivMod(e)->rhs, part.rhs);
    });
  }

  Expr Times(const Expr& a, const Expr& b) { return analyzer_.Simplify(a * b); }

  // What of an expression is open, equal digits joined.
  Number NumberOf(const Expr& e) {
    Number out;
    for (const Term& t : SumOf(e).terms) AddTerm(t.product, IndexConst(t.coefficient), &out);
    return out;
  }

  void AddTerm(const Expr& product, const Expr& scale, Number* out) {
    std::vector<Expr> known{scale}, open;
    for (const Expr& atom : Factors(product)) (IsOpen(atom) ? open : known).push_back(atom);
    if (!open.empty()) Add({analyzer_.Simplify(ProductOf(known)), ProductOf(open)}, out);
  }

  void Add(const Digit& digit, Number* out) {
    for (Digit& d : *out) {
      if (!StructuralEqual(d.value, digit.value)) continue;
      d.weight = analyzer_.Simplify(d.weight + digit.weight);
      std::erase_if(*out, [](const Digit& each) { return IsZero(each.weight); });
      return;
    }
    out->push_back(digit);
  }

  bool IsOpen(const Expr& e) const {
    return UsesAnyVar(e, open_) && std::none_of(fixed_.begin(), fixed_.end(), [&](const Expr& f) {
             return StructuralEqual(f, e);
           });
  }

  void DropFixed(Number* n) const {
    std::erase_if(*n, [&](const Digit& d) { return !IsOpen(d.value); });
  }

  bool Fix(const Expr& digit) {
    if (const auto* v = As<VarNode>(digit)) {
      open_.erase(v);
    } else {
      fixed_.push_back(digit);
    }
    return true;
  }

  // ---- Divide ----

  bool Divide(size_t index) {
    DropFixed(&numbers_[index]);
    const Number n = numbers_[index];
    if (n.size() == 1) {
      if (!IsNeverZero(n[0].weight)) return false;
      numbers_[index].clear();
      return Fix(n[0].value);
    }
    for (size_t i = 0; i < n.size(); ++i) {
      Number whole, rest;
      for (const Digit& d : n) (IsMultiple(d.weight, n[i].weight) ? whole : rest).push_back(d);
      if (rest.empty() && TakeOut(n[i].weight, &numbers_[index])) return true;
      if (rest.empty() || !VariesByLess(rest, n[i].weight)) continue;
      // There are iterations: what something varies by less than is no zero.
      if (!AsInt(n[i].weight)) tokens_.push_back(analyzer_.Assume(Gt(n[i].weight, IndexConst(0))));
      numbers_[index] = std::move(whole);
      numbers_.push_back(std::move(rest));
      return true;
    }
    return false;
  }

  // A size that all weights are multiples of: they are numbers then, or smaller.
  bool TakeOut(const Expr& size, Number* n) {
    if (AsInt(size) || !IsNeverZero(size)) return false;
    for (Digit& d : *n) d.weight = analyzer_.Simplify(d.weight / size);
    return true;
  }

  bool IsNeverZero(const Expr& weight) {
    if (const auto c = AsInt(weight)) return *c != 0;
    return analyzer_.CanProve(Gt(weight, IndexConst(0))) ||
           analyzer_.CanProve(Lt(weight, IndexConst(0)));
  }

  bool IsMultiple(const Expr& a, const Expr& m) {
    const auto x = AsInt(a), y = AsInt(m);
    if (x && y) return *x % *y == 0;
    return StructuralEqual(a, m) || IsZero(analyzer_.Simplify(a % m));
  }

  // In any two iterations the sums differ by less than |m|.
  bool VariesByLess(const Number& n, const Expr& m) {
    const auto constant = AsInt(m);
    if (constant && SpanOf(n) < std::abs(*constant)) return true;
    Expr sum = IndexConst(0);
    for (const Digit& d : n) sum = sum + d.weight * d.value;
    sum = analyzer_.Simplify(sum);
    const Expr most = constant ? IndexConst(std::abs(*constant) - 1) : m - 1;
    const Interval range = analyzer_.ConstBounds(sum);
    return (range.min != Interval::kNegInf && IsAtMost(sum - range.min, most)) ||
           (range.max != Interval::kPosInf && IsAtMost(IndexConst(range.max) - sum, most));
  }

  // a <= b, by what the analyzer knows at once, without quotients, or by one of the guards.
  bool IsAtMost(const Expr& a, const Expr& b) {
    if (analyzer_.CanProve(Le(a, b))) return true;
    if (guards_.empty()) return false;
    const Expr excess = WithoutQuotients(analyzer_.Simplify(a - b));
    if (analyzer_.CanProve(Le(excess, IndexConst(0)))) return true;
    return std::any_of(guards_.begin(), guards_.end(),
                       [&](const Expr& g) { return FollowsFrom(g, SumOf(excess)); });
  }

  // Not positive where the expression is not: x / d + r <= 0 is x + d * r - d + 1 <= 0.
  Expr WithoutQuotients(Expr e) {
    constexpr int kMost = 8;
    for (int i = 0; i < kMost; ++i) {
      const auto quotient = QuotientIn(SumOf(e));
      if (!quotient) break;
      const Binary& div = *AsDivMod(*quotient);
      e = analyzer_.Simplify((e - *quotient) * div.rhs + div.lhs - div.rhs + 1);
    }
    return e;
  }

  // c * sum <= k * guard for some positive c and k, so that sum <= 0 where guard <= 0.
  bool FollowsFrom(const Expr& guard, const Linear& sum) {
    const Linear given = SumOf(guard);
    for (const Term& t : sum.terms) {
      for (const Term& g : given.terms) {
        if (!StructuralEqual(t.product, g.product) || (t.coefficient < 0) != (g.coefficient < 0))
          continue;
        const Expr left = ToExpr(sum) * std::abs(g.coefficient);
        if (analyzer_.CanProve(Le(left, guard * std::abs(t.coefficient)))) return true;
      }
    }
    return false;
  }

  // The sum of what the digits differ by, each by itself; kPosInf where there is no limit.
  int64_t SpanOf(const Number& n) {
    int64_t out = 0;
    for (const Digit& d : n) {
      const auto weight = AsInt(d.weight);
      const Interval range = analyzer_.ConstBounds(d.value);
      int64_t span = 0;
      const bool unknown = !weight || range.min == Interval::kNegInf ||
                           range.max == Interval::kPosInf ||
                           __builtin_sub_overflow(range.max, range.min, &span) ||
                           __builtin_mul_overflow(std::abs(*weight), span, &span) ||
                           __builtin_add_overflow(out, span, &out);
      if (unknown) return Interval::kPosInf;
    }
    return out;
  }

  // ---- Rejoin ----

  bool Rejoin() {
    constexpr size_t kMostNumbers = 32;
    for (Number& n : numbers_) {
      for (Digit& d : n) {
        const Binary* div = AsDivMod(d.value);
        if (!div || div->op != BinaryOp::kDiv || UsesAnyVar(div->rhs, open_)) continue;
        if (d.rejoined || !IsRemainderKnown(div->lhs, div->rhs)) continue;
        d.rejoined = true;
        if (numbers_.size() >= kMostNumbers) return false;
        numbers_.push_back(Rejoined(n, d, *div));
        return true;
      }
    }
    for (const Expr& f : fixed_) {
      const Binary* part = AsDivMod(f);
      if (!part || UsesAnyVar(part->rhs, open_) || !rejoined_.insert(part).second) continue;
      const bool is_div = part->op == BinaryOp::kDiv;
      if (is_div ? IsRemainderKnown(part->lhs, part->rhs) : IsQuotientKnown(part->lhs, part->rhs)) {
        Know(part->lhs);
        return true;
      }
      rejoined_.erase(part);
    }
    return false;
  }

  // x % m, or for some c with m = c * k both x % c and x / c % k.
  bool IsRemainderKnown(const Expr& x, const Expr& m) {
    if (IsOne(m) || IsKnown(x % m)) return true;
    for (size_t i = 0; i < fixed_.size(); ++i) {
      const Binary* part = AsDivMod(fixed_[i]);
      if (!part || part->op != BinaryOp::kMod || StructuralEqual(part->rhs, m)) continue;
      const Expr c = part->rhs;
      if (UsesAnyVar(c, open_) || !IsMultiple(m, c) || !IsKnown(x % c)) continue;
      if (IsRemainderKnown(analyzer_.Simplify(x / c), analyzer_.Simplify(m / c))) return true;
    }
    return false;
  }

  // x / m, also with a quotient that is a term of x taken out of it: (s + y / d) / m is
  // (d * s + y) / (d * m).
  bool IsQuotientKnown(const Expr& x, const Expr& m) {
    if (IsKnown(x / m)) return true;
    const auto quotient = QuotientIn(SumOf(x));
    if (!quotient) return false;
    const Binary& inner = *AsDivMod(*quotient);
    return IsQuotientKnown(analyzer_.Simplify((x - *quotient) * inner.rhs + inner.lhs),
                           analyzer_.Simplify(m * inner.rhs));
  }

  // The largest quotient by a positive number that is a term of the sum.
  std::optional<Expr> QuotientIn(const Linear& sum) {
    std::optional<Expr> out;
    int most = 0;
    for (const Term& t : sum.terms) {
      const Binary* div = AsDivMod(t.product);
      if (t.coefficient != 1 || !div || div->op != BinaryOp::kDiv) continue;
      if (analyzer_.ConstBounds(div->rhs).min <= 0) continue;
      int size = 0;
      PreOrder(t.product, [&](const NodeRef&) { return ++size != 0; });
      if (size <= most) continue;
      most = size;
      out = t.product;
    }
    return out;
  }

  Number Rejoined(const Number& n, const Digit& quotient, const Binary& div) {
    Number out;
    for (const Digit& d : n) {
      if (d.value != quotient.value) Add({Times(d.weight, div.rhs), d.value}, &out);
    }
    for (const Digit& d : NumberOf(div.lhs)) Add({Times(d.weight, quotient.weight), d.value}, &out);
    return out;
  }

  // ---- Whole ----

  bool TakeParts() {
    for (const Number& n : numbers_) {
      for (const Digit& d : n) {
        const Binary* part = AsDivMod(d.value);
        if (part && !UsesAnyVar(part->rhs, open_) && IsKnown(part->lhs)) return Fix(d.value);
      }
    }
    return false;
  }

  // The expression is a combination of fixed digits and a known number.
  bool IsKnown(const Expr& e) {
    const Number n = NumberOf(analyzer_.Simplify(e));
    return n.empty() || std::any_of(numbers_.begin(), numbers_.end(),
                                    [&](const Number& k) { return IsScaled(n, k); });
  }

  // n = c * k for some c.
  bool IsScaled(const Number& n, const Number& k) {
    if (n.size() != k.size()) return false;
    std::optional<Expr> scale;
    return std::all_of(n.begin(), n.end(), [&](const Digit& d) {
      auto same = std::find_if(k.begin(), k.end(),
                               [&](const Digit& o) { return StructuralEqual(d.value, o.value); });
      if (same == k.end() || !IsMultiple(d.weight, same->weight)) return false;
      const Expr c = analyzer_.Simplify(d.weight / same->weight);
      if (!scale) scale = c;
      return StructuralEqual(*scale, c);
    });
  }

  std::unordered_set<const VarNode*> open_;
  std::vector<Expr> guards_;  // sums that are not positive
  Analyzer& analyzer_;
  std::vector<size_t> tokens_;
  std::vector<Var> slacks_;
  std::vector<Number> numbers_;
  std::vector<Expr> guarded_, fixed_;
  std::unordered_set<const Node*> rejoined_;
};

// Guards that hold while it lives, and what follows from each for the single terms of its sum.
class Guards {
 public:
  Guards(std::vector<Expr> guards, const std::unordered_set<const VarNode*>& vars,
         Analyzer* analyzer)
      : analyzer_(*analyzer) {
    // Plain sums tell the ranges by which quotients and remainders get simpler.
    std::stable_partition(guards.begin(), guards.end(),
                          [](const Expr& e) { return !HasDivMod(e); });
    for (const Expr& g : guards) {
      Assume(g);
      if (const auto sum = NotPositive(g)) AssumeTerms(SumOf(*sum));
    }
    VarMap pinned;
    for (const VarNode* v : vars) {
      const Interval range = analyzer_.ConstBounds(Expr(v));
      if (range.IsPoint()) pinned[v] = IndexConst(range.min);
    }
    for (const Expr& g : guards) {
      const auto sum = NotPositive(Substitute(g, pinned));
      if (sum) sums_.push_back(analyzer_.Simplify(*sum));
    }
  }
  ~Guards() {
    for (; !tokens_.empty(); tokens_.pop_back()) analyzer_.Retract(tokens_.back());
  }
  Guards(const Guards&) = delete;
  Guards& operator=(const Guards&) = delete;

  /// The guards on sums of index, each as a sum that is not positive.
  const std::vector<Expr>& sums() const { return sums_; }

 private:
  void Assume(const Expr& e) { tokens_.push_back(analyzer_.Assume(e)); }

  // c * term + rest <= 0: what the least of the rest leaves for the term.
  void AssumeTerms(const Linear& sum) {
    for (const Term& t : sum.terms) {
      if (sum.terms.size() < 2 || t.coefficient == 0) continue;
      const Interval rest = analyzer_.ConstBounds(ToExpr(sum) - t.product * t.coefficient);
      if (rest.min == Interval::kNegInf || rest.min == Interval::kPosInf) continue;
      const Interval own = analyzer_.ConstBounds(t.product);
      const int64_t end = t.coefficient > 0 ? FloorDivInt(-rest.min, t.coefficient)
                                            : -FloorDivInt(rest.min, t.coefficient);
      if (t.coefficient > 0 && end < own.max) Assume(Le(t.product, IndexConst(end)));
      if (t.coefficient < 0 && end > own.min) Assume(Ge(t.product, IndexConst(end)));
    }
  }

  Analyzer& analyzer_;
  std::vector<size_t> tokens_;
  std::vector<Expr> sums_;
};

using VarSet = std::unordered_set<const VarNode*>;

// Those of the variables in question that stay open; what else was found joins what is known.
VarSet OpenVars(std::vector<KnownSum>* known, const VarSet& unknown,
                const std::vector<Expr>& guards, Analyzer* analyzer) {
  const Guards assumed(guards, unknown, analyzer);
  Solver solver(unknown, assumed.sums(), analyzer);
  for (const KnownSum& k : *known) solver.Know(k);
  solver.KnowPinned();
  VarSet open = solver.Solve();
  solver.AddFound(known);
  return open;
}

// Those of the unknown that stay open, or some of them as soon as none of `wanted` does. Most
// answers need no guard, and to learn one costs as much as all else; what it says of a variable may
// also hide where its loop ends. So it goes without them first, and in turn while that helps.
VarSet OpenOf(const std::vector<KnownSum>& known, const VarSet& unknown, const VarSet& wanted,
              const std::vector<Expr>& guards, Analyzer* analyzer) {
  std::vector<KnownSum> found = known;
  VarSet open = OpenVars(&found, unknown, {}, analyzer);
  const auto goes_on = [&] {
    return std::any_of(wanted.begin(), wanted.end(),
                       [&](const VarNode* v) { return open.count(v) != 0; });
  };
  for (bool helps = !guards.empty(); helps && goes_on();) {
    const size_t before = open.size();
    open = OpenVars(&found, open, guards, analyzer);
    if (goes_on()) open = OpenVars(&found, open, {}, analyzer);
    helps = open.size() < before;
  }
  return open;
}

}  // namespace

VarSet FixedVars(const std::vector<KnownSum>& known, const VarSet& unknown,
                 const std::vector<Expr>& guards, Analyzer* analyzer) {
  const VarSet open = OpenOf(known, unknown, unknown, guards, analyzer);
  VarSet out = unknown;
  std::erase_if(out, [&](const VarNode* v) { return open.count(v) != 0; });
  return out;
}

bool AreFixed(const VarSet& wanted, const std::vector<KnownSum>& known, const VarSet& unknown,
              const std::vector<Expr>& guards, Analyzer* analyzer) {
  const VarSet open = OpenOf(known, unknown, wanted, guards, analyzer);
  return std::none_of(wanted.begin(), wanted.end(),
                      [&](const VarNode* v) { return open.count(v) != 0; });
}

bool HasDivMod(const Expr& e) {
  bool found = false;
  PreOrder(e, [&](const NodeRef& n) {
    const auto* expr = As<ExprNode>(n);
    found |= expr && AsDivMod(Expr(expr));
    return !found;
  });
  return found;
}

int64_t SmallestPart(const std::vector<Expr>& expressions, const VarNode* v) {
  int64_t least = 0;
  for (const Expr& e : expressions) {
    PreOrder(e, [&](const NodeRef& n) {
      const auto* b = As<Binary>(n);
      const bool parts = b && (b->op == BinaryOp::kDiv || b->op == BinaryOp::kMod);
      const auto c = parts && b->lhs.get() == v ? AsInt(b->rhs) : std::nullopt;
      if (c && *c > 1 && (least == 0 || *c < least)) least = *c;
      return true;
    });
  }
  return least;
}

}  // namespace tenon
