// Proofs of inequalities: sum <= 0, by constant ranges, assumed facts, case distinction on min, max
// and select, the bounds of floor quotients, elimination of variables with symbolic bounds,
// innermost first, and of factors with constant ones. Every step replaces the sum by one that is
// not smaller, so a success is a proof; a budget bounds the search.
#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "arith/analyzer_impl.h"
#include "arith/int_math.h"
#include "arith/interval.h"

namespace tenon {

namespace {

constexpr int kProofSteps = 48, kKeptSteps = 4;
// A step that simplifies a bound may want proofs of its own, and they the first one again: a
// variable's bound may hold a quotient whose dividend is known to be below that variable.
constexpr int kProofDepth = 4;

Linear WithoutTerm(const Linear& sum, const Term& t) {
  Linear rest = sum;
  rest.terms.erase(rest.terms.begin() + (&t - sum.terms.data()));
  return rest;
}

bool IsProduct(const Expr& e) {
  const auto* mul = As<Binary>(e);
  return mul && mul->op == BinaryOp::kMul;
}

// The sum with term i replaced by its coefficient times `by`.
std::optional<Linear> ReplaceTerm(ExprIds& ids, const Linear& sum, size_t i, const Linear& by) {
  return AddScaled(ids, WithoutTerm(sum, sum.terms[i]), by, sum.terms[i].coefficient);
}

}  // namespace

bool Analyzer::Impl::ProveNonPositive(const Linear& sum) {
  if (Bounds(sum).max <= 0) return true;
  if (sum.IsConstant() || proof_depth >= kProofDepth) return false;
  const int outer_steps = std::exchange(proof_steps, kProofSteps >> proof_depth);
  ++proof_depth;
  const bool proved = ProveStep(sum, 3);
  --proof_depth;
  proof_steps = outer_steps;
  return proved;
}

bool Analyzer::Impl::ProveLe(const Expr& a, const Expr& b, int64_t slack) {
  auto difference = Difference(a, b);
  if (difference) difference = AddScaled(ids, *difference, ConstantSum(slack), 1);
  return difference && ProveNonPositive(*difference);
}

bool Analyzer::Impl::ProveStep(const Linear& sum, int facts_left) {
  if (IsExhausted()) return false;
  --proof_steps;
  // What a step costs grows with what it is about: each way tries each term.
  constexpr size_t kTermsOfAStep = 4;
  proof_work -= 1 + static_cast<int>(sum.terms.size() / kTermsOfAStep);
  if (Bounds(sum).max <= 0) return true;
  if (sum.IsConstant()) return false;
  if (facts_left > 0 && ProveByFact(sum, facts_left)) return true;
  if (IsExhausted()) return false;
  // A quotient's own bounds may lead far astray where a variable is bound by that very quotient:
  // some steps are kept for the other ways, few enough to leave chains of quotients theirs.
  const int kept = std::min(kKeptSteps, proof_steps / 8);
  proof_steps -= kept;
  const bool by_quotient = ProveByQuotient(sum, facts_left);
  proof_steps += kept;
  if (by_quotient) return true;
  // Each way may have used up what is left, and then the next need not make its sums.
  using Way = bool (Impl::*)(const Linear&, int);
  for (const Way way : {&Impl::ProveByCases, &Impl::ProveByRemainder, &Impl::ProveByElimination,
                        &Impl::ProveByFactor}) {
    if (IsExhausted()) return false;
    if ((this->*way)(sum, facts_left)) return true;
  }
  return false;
}

bool Analyzer::Impl::ProveByFact(const Linear& sum, int facts_left) {
  const size_t count = inequalities.size();
  for (size_t i = 0; i < count; ++i) {
    const Inequality& fact = inequalities[i];
    const Term& lead = fact.sum.terms[0];
    for (const Term& t : sum.terms) {
      if (IsExhausted()) return false;
      if (!ids.Same(t.product, lead.product)) continue;
      if ((t.coefficient < 0) != (lead.coefficient < 0)) continue;
      const int64_t common = std::gcd(t.coefficient, lead.coefficient);
      const int64_t scale = std::abs(t.coefficient / common);
      // times * sum = (times * sum - scale * fact) + scale * fact <= rest + scale * bound
      const int64_t times = std::abs(lead.coefficient / common);
      std::optional<Linear> rest = Scale(sum, times);
      if (rest) rest = AddScaled(ids, std::move(*rest), fact.sum, -scale);
      if (rest) rest = AddScaled(ids, std::move(*rest), ConstantSum(fact.bound), scale);
      if (rest && ProveStep(*rest, facts_left - 1)) return true;
    }
  }
  return false;
}

bool Analyzer::Impl::ProveByCases(const Linear& sum, int facts_left) {
  for (size_t i = 0; i < sum.terms.size(); ++i) {
    const Term& t = sum.terms[i];
    const auto* select = As<Select>(t.product);
    const auto* binary = As<Binary>(t.product);
    bool is_min = binary && binary->op == BinaryOp::kMin;
    bool is_max = binary && binary->op == BinaryOp::kMax;
    if (!select && !is_min && !is_max) continue;
    auto with = [&](const Expr& choice) {
      auto next = ReplaceTerm(ids, sum, i, LinearOf(choice));
      return next && ProveStep(*next, facts_left);
    };
    // c * min(a, b) with c > 0 is at most c * a and at most c * b: one of them is enough.
    bool either = (is_min && t.coefficient > 0) || (is_max && t.coefficient < 0);
    Expr a = select ? select->on_true : binary->lhs;
    Expr b = select ? select->on_false : binary->rhs;
    return either ? with(a) || with(b) : with(a) && with(b);
  }
  return false;
}

// A quotient with coefficient 1 or -1 goes exactly: x / d + r <= 0 is x + d r - d + 1 <= 0, and r -
// x / d <= 0 is d r - x <= 0 (d > 0: a divisor is not 0). Else d * (x / d) lies in [x - d + 1, x].
bool Analyzer::Impl::ProveByQuotient(const Linear& sum, int facts_left) {
  for (const Term& t : sum.terms) {
    const auto* div = As<Binary>(t.product);
    if (!div || div->op != BinaryOp::kDiv || Bounds(div->rhs).min < 0) continue;
    const Linear &d = LinearOf(div->rhs), &x = LinearOf(div->lhs);
    std::optional<Linear> next;
    if (t.coefficient == 1 || t.coefficient == -1) {
      auto rest = Multiply(ids, WithoutTerm(sum, t), d);
      next = rest ? AddScaled(ids, std::move(*rest), x, t.coefficient) : rest;
      if (next && t.coefficient == 1) next = AddScaled(ids, std::move(*next), d, -1);
      if (next && t.coefficient == 1) next = AddScaled(ids, std::move(*next), ConstantSum(1), 1);
    } else if (d.IsConstant()) {
      next = BoundQuotient(sum, t, x, d.constant);
    }
    return next && ProveStep(*next, facts_left);
  }
  return false;
}

std::optional<Linear> Analyzer::Impl::BoundQuotient(const Linear& sum, const Term& quotient,
                                                    const Linear& x, int64_t d) {
  const int64_t scale = d / GcdInt(quotient.coefficient, d);
  auto scaled = Scale(sum, scale);
  auto c = CheckedMul(quotient.coefficient, scale);  // a multiple of d
  if (!scaled || !c) return std::nullopt;
  auto next = AddScaled(ids, *scaled, AtomSum(quotient.product), -*c);
  if (next) next = AddScaled(ids, *next, x, *c / d);
  if (next && *c < 0) next = AddScaled(ids, *next, ConstantSum(d - 1), -(*c / d));
  return next;
}

// x % d lies in [0, d - 1] for d > 0; constant d are known to Bounds already.
bool Analyzer::Impl::ProveByRemainder(const Linear& sum, int facts_left) {
  for (size_t i = 0; i < sum.terms.size(); ++i) {
    const auto* mod = As<Binary>(sum.terms[i].product);
    if (!mod || mod->op != BinaryOp::kMod || AsInt(mod->rhs) || Bounds(mod->rhs).min < 0) continue;
    auto most = AddScaled(ids, LinearOf(mod->rhs), ConstantSum(1), -1);
    auto next =
        most ? ReplaceTerm(ids, sum, i, sum.terms[i].coefficient > 0 ? *most : ConstantSum(0))
             : most;
    return next && ProveStep(*next, facts_left);
  }
  return false;
}

bool Analyzer::Impl::ProveByElimination(const Linear& sum, int facts_left) {
  const VarNode* inner = nullptr;
  const VarFacts* inner_facts = nullptr;
  for (const Term& t : sum.terms) {
    for (const Expr& atom : ids.FactorsOf(t.product)) {
      const auto* var = As<VarNode>(atom);
      const VarFacts* facts = var ? FindFacts(var) : nullptr;
      if (!facts || (!facts->min && !facts->max)) continue;
      if (!inner_facts || facts->order > inner_facts->order) {
        inner = var;
        inner_facts = facts;
      }
    }
  }
  if (!inner) return false;
  // sum = rest + factor * var
  Linear rest = ConstantSum(sum.constant), factor;
  for (const Term& t : sum.terms) {
    const std::vector<Expr>& factors = ids.FactorsOf(t.product);
    const auto is_inner = [&](const Expr& a) { return a.get() == inner; };
    if (std::none_of(factors.begin(), factors.end(), is_inner)) {
      rest.terms.push_back(t);
      continue;
    }
    std::vector<Expr> atoms = factors;
    const auto it = std::find_if(atoms.begin(), atoms.end(), is_inner);
    atoms.erase(it);
    if (std::any_of(atoms.begin(), atoms.end(), is_inner)) return false;
    if (atoms.empty()) {
      factor.constant = t.coefficient;
    } else {
      factor.terms.push_back({ProductOf(ids, std::move(atoms)), t.coefficient});
    }
  }
  auto normal = Normalize(ids, factor);
  if (!normal) return false;
  Interval sign = Bounds(*normal);
  Expr bound = sign.min >= 0 ? inner_facts->max : sign.max <= 0 ? inner_facts->min : nullptr;
  if (!bound) return false;
  // What has been assumed since may have tightened a constant one.
  if (AsInt(bound))
    bound = IndexConst(sign.min >= 0 ? inner_facts->range.max : inner_facts->range.min);
  auto product = Multiply(ids, *normal, LinearOf(bound));
  auto next = product ? AddScaled(ids, std::move(rest), *product, 1) : std::nullopt;
  return next && ProveStep(*next, facts_left);
}

// x % 5 * n is at most 4 * n where n is not negative: a factor of constant range goes to its end,
// so that what it multiplies cancels.
bool Analyzer::Impl::ProveByFactor(const Linear& sum, int facts_left) {
  for (size_t i = 0; i < sum.terms.size(); ++i) {
    const Term& t = sum.terms[i];
    if (!IsProduct(t.product)) continue;
    const std::vector<Expr>& atoms = ids.FactorsOf(t.product);
    for (size_t k = 0; k < atoms.size(); ++k) {
      if (IsExhausted()) return false;
      const Interval range = Bounds(atoms[k]);
      const int64_t end = t.coefficient > 0 ? range.max : range.min;
      if (end == Interval::kNegInf || end == Interval::kPosInf) continue;
      const Linear& rest = LinearOf(ids.Without(t.product, k));
      if (Bounds(rest).min < 0) continue;
      const auto scaled = Scale(rest, end);
      const auto next = scaled ? ReplaceTerm(ids, sum, i, *scaled) : scaled;
      if (next && ProveStep(*next, facts_left)) return true;
    }
  }
  return false;
}

}  // namespace tenon
