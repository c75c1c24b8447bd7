#include "dependence/box.h"

#include <algorithm>

#include "arith/conditions.h"
#include "arith/filled_box.h"
#include "ir/visit.h"

namespace tenon {

IntervalMap DomainOf(const std::vector<const For*>& loops, Analyzer* analyzer) {
  IntervalMap domain;
  for (const For* loop : loops) {
    ExprInterval first = EvalInterval(loop->min, domain, analyzer);
    ExprInterval last = EvalInterval(loop->min + loop->extent - 1, domain, analyzer);
    domain[loop->var.get()] = {first.min, last.max};
  }
  return domain;
}

namespace {

// Every loop that the expressions speak of runs over its whole domain whatever the others do.
bool AreApart(const std::vector<const For*>& loops, const std::vector<Expr>& used) {
  std::unordered_set<const VarNode*> vars;
  for (const For* loop : loops) vars.insert(loop->var.get());
  return std::all_of(loops.begin(), loops.end(), [&](const For* loop) {
    if (!UsesAnyVar(loop->min, vars) && !UsesAnyVar(loop->extent, vars)) return true;
    return std::none_of(used.begin(), used.end(),
                        [&](const Expr& e) { return UsesVar(e, loop->var.get()); });
  });
}

}  // namespace

std::optional<Box> FilledBox(const std::vector<Expr>& first, const std::vector<Expr>& extents,
                             const std::vector<const For*>& loops, std::vector<Expr> guards,
                             Analyzer* analyzer) {
  if (!AreApart(loops, first)) return std::nullopt;
  return FilledBox(Iterations{first, DomainOf(loops, analyzer), std::move(guards)}, extents,
                   analyzer);
}

std::vector<KnownSum> SumsOf(const Box& box, Analyzer* analyzer) {
  std::vector<KnownSum> out;
  for (const ExprInterval& d : box) {
    if (const Expr length = Length(d, analyzer)) out.push_back({d.min, length});
  }
  return out;
}

ExprInterval Union(const ExprInterval& a, const ExprInterval& b, Analyzer* analyzer) {
  auto pick = [&](const Expr& x, const Expr& y, bool smaller) -> Expr {
    if (!x || !y) return nullptr;
    return analyzer->Simplify(smaller ? Min(x, y) : Max(x, y));
  };
  return {pick(a.min, b.min, true), pick(a.max, b.max, false)};
}

Box Union(const Box& a, const Box& b, Analyzer* analyzer) {
  Box out;
  for (size_t i = 0; i < a.size(); ++i) out.push_back(Union(a[i], b[i], analyzer));
  return out;
}

bool Contains(const ExprInterval& outer, const ExprInterval& inner, Analyzer* analyzer) {
  bool below = !outer.min || (inner.min && analyzer->CanProve(Le(outer.min, inner.min)));
  bool above = !outer.max || (inner.max && analyzer->CanProve(Le(inner.max, outer.max)));
  return below && above;
}

bool Contains(const Box& outer, const Box& inner, Analyzer* analyzer) {
  for (size_t i = 0; i < outer.size(); ++i) {
    if (!Contains(outer[i], inner[i], analyzer)) return false;
  }
  return true;
}

Expr Length(const ExprInterval& interval, Analyzer* analyzer) {
  if (!interval.min || !interval.max) return nullptr;
  return analyzer->Simplify(interval.max - interval.min + 1);
}

namespace {

// The operands of nested minima (maxima); the expression itself when it is none.
void Arms(const Expr& e, BinaryOp op, std::vector<Expr>* out) {
  const auto* b = As<Binary>(e);
  if (b != nullptr && b->op == op) {
    Arms(b->lhs, op, out);
    Arms(b->rhs, op, out);
  } else {
    out->push_back(e);
  }
}

}  // namespace

ExprInterval RelaxToConstantLength(const ExprInterval& interval, Analyzer* analyzer) {
  Expr length = Length(interval, analyzer);
  if (!length || AsInt(length)) return interval;
  // max(a, b) >= a and min(c, d) <= c: the interval from a to c holds the one in question.
  std::vector<Expr> lows, highs;
  Arms(interval.min, BinaryOp::kMax, &lows);
  Arms(interval.max, BinaryOp::kMin, &highs);
  ExprInterval best = interval;
  std::optional<int64_t> best_length;
  for (const Expr& low : lows) {
    for (const Expr& high : highs) {
      std::optional<int64_t> n = AsInt(analyzer->Simplify(high - low + 1));
      if (!n || (best_length && *best_length <= *n)) continue;
      best = {low, high};
      best_length = n;
    }
  }
  return best;
}

Expr BoundsGuard(const Expr& e, const Expr& lo, const Expr& extent, Analyzer* analyzer) {
  Expr guard;
  for (const Expr& half : {Ge(e, lo), Lt(e, analyzer->Simplify(lo + extent))}) {
    if (!analyzer->CanProve(half)) guard = AndAlso(guard, analyzer->Simplify(half));
  }
  return guard;
}

}  // namespace tenon
