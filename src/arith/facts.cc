// What is known: bindings of variables and assumed conditions.
#include <algorithm>

#include "arith/analyzer_impl.h"
#include "arith/int_math.h"
#include "arith/interval.h"
#include "ir/visit.h"
#include "support/check.h"

namespace tenon {

bool Analyzer::Impl::Mentions(const Expr& e, const VarNode* var) { return UsesVar(e, var); }

VarFacts& Analyzer::Impl::FactsOf(const Var& var) {
  auto [it, added] = vars.try_emplace(var.get());
  if (added) keep_vars.push_back(var);
  it->second.order = next_order++;
  return it->second;
}

const VarFacts* Analyzer::Impl::FindFacts(const VarNode* var) const {
  auto it = vars.find(var);
  return it == vars.end() ? nullptr : &it->second;
}

void Analyzer::Impl::Bind(const Var& var, const Expr& min, const Expr& extent) {
  Expr lo = Simplify(min);
  Expr hi = Simplify(min + extent - 1);
  Interval range{Bounds(lo).min, Bounds(hi).max};
  VarFacts facts;
  facts.range = range;
  if (lo->dtype.IsIndex() && !Mentions(lo, var.get()) && !Mentions(hi, var.get())) {
    if (ids.Same(lo, hi)) {
      facts.value = lo;
    } else {
      facts.min = lo;
      facts.max = hi;
    }
  }
  VarFacts& slot = FactsOf(var);
  facts.order = slot.order;
  slot = facts;
  ForgetResults();
}

Results::Of& Results::At(ExprIds::Id id) {
  if (id >= places_.size()) places_.resize(std::max<size_t>(2 * places_.size(), id + 1));
  Place& place = places_[id];
  if (place.age == age_) return of_[place.index];
  place = {age_, static_cast<uint32_t>(used_)};
  if (used_ == of_.size()) of_.emplace_back();
  Of& fresh = of_[used_++];
  fresh = Of();
  return fresh;
}

const Linear& Results::Keep(Linear sum) {
  if (sums_used_ == sums_.size()) sums_.emplace_back();
  Linear& place = sums_[sums_used_++];
  place = std::move(sum);
  return place;
}

void Results::Clear() {
  used_ = sums_used_ = 0;
  if (++age_ != 0) return;
  places_.clear();  // ages begin again
  age_ = 1;
}

void Analyzer::Impl::Trim() {
  constexpr size_t kManyNodes = 20'000;
  if (!marks.empty() || ids.size() < kManyNodes) return;
  ids.Clear();
  layers.resize(1);
  ForgetResults();
}

size_t Analyzer::Impl::Assume(const Expr& condition) {
  Expr simple = Simplify(condition);
  marks.push_back({inequalities.size(), known.size(), undo.size()});
  if (layers.size() == marks.size()) layers.emplace_back();
  ForgetResults();
  std::vector<Expr> conjuncts{simple};
  for (size_t i = 0; i < conjuncts.size(); ++i) {
    Expr c = conjuncts[i];
    const auto* conjunction = As<Binary>(c);
    if (conjunction && conjunction->op == BinaryOp::kAnd) {
      conjuncts.push_back(conjunction->lhs);
      conjuncts.push_back(conjunction->rhs);
    } else {
      AssumeOne(c);
    }
  }
  ForgetResults();  // of the way here, when less was known
  return marks.size() - 1;
}

void Analyzer::Impl::Retract(size_t token) {
  TN_CHECK(token + 1 == marks.size(), "assumptions are retracted last in, first out");
  Mark mark = marks.back();
  marks.pop_back();
  while (undo.size() > mark.undo) {
    vars[undo.back().var] = undo.back().facts;
    undo.pop_back();
  }
  inequalities.resize(mark.inequalities);
  known.resize(mark.known);
}

void Analyzer::Impl::AssumeOne(const Expr& condition) {
  if (!condition->dtype.IsScalar() || AsInt(condition)) return;
  known.push_back({condition, ids.Of(condition), ids.Of(SimplifyNot(condition))});
  const auto* compare = As<Binary>(condition);
  if (!compare || !compare->lhs->dtype.IsIndex()) return;
  auto difference = Difference(compare->lhs, compare->rhs);
  if (!difference) return;
  // As sum <= bound, once or twice.
  auto add = [&](Linear sum, int64_t slack) {
    auto bound = CheckedSub(-1 - slack, sum.constant);
    auto g = CoefficientGcd(sum);
    if (!bound || g == 0) return;
    sum.constant = 0;
    for (Term& t : sum.terms) t.coefficient /= g;
    AssumeAtMost({std::move(sum), FloorDivInt(*bound, g)});
  };
  auto negated = Scale(*difference, -1);
  if (!negated) return;
  switch (compare->op) {
    case BinaryOp::kLt: return add(*difference, 0);
    case BinaryOp::kLe: return add(*difference, -1);
    case BinaryOp::kGt: return add(*negated, 0);
    case BinaryOp::kGe: return add(*negated, -1);
    case BinaryOp::kEq: add(*difference, -1); return add(*negated, -1);
    default: return;  // NOLINT: other operators say nothing about order
  }
}

void Analyzer::Impl::AssumeAtMost(Inequality fact) {
  const Term& first = fact.sum.terms[0];
  const auto* var = As<VarNode>(first.product);
  if (fact.sum.terms.size() == 1 && var && (first.coefficient == 1 || first.coefficient == -1)) {
    Var ref(var);
    VarFacts before = vars.count(var) ? vars[var] : VarFacts{};
    undo.push_back({var, before});
    int order = before.order;
    VarFacts& facts = FactsOf(ref);
    if (order != 0) facts.order = order;
    Interval half = first.coefficient == 1 ? Interval{Interval::kNegInf, fact.bound}
                                           : Neg(Interval{Interval::kNegInf, fact.bound});
    facts.range = Intersect(facts.range, half);
  }
  inequalities.push_back(std::move(fact));
}

std::optional<bool> Analyzer::Impl::Known(const Expr& condition) {
  if (known.empty()) return std::nullopt;
  ExprIds::Id id = ids.Of(condition);
  for (const KnownTrue& k : known) {
    if (k.id == id) return true;
    if (k.negation == id) return false;
  }
  return std::nullopt;
}

}  // namespace tenon
