#include "schedule/analysis/region.h"

#include <algorithm>

#include "arith/filled_box.h"
#include "ir/visit.h"

namespace tenon::primitive {

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

// The loops' domain where the block runs at all: its guards end the loops whose variable stands
// alone on one side of them.
IntervalMap DomainWhere(const std::vector<const For*>& loops, const Block& block,
                        Analyzer* analyzer) {
  IntervalMap domain = DomainOf(loops, analyzer);
  if (!block.where) return domain;
  std::unordered_set<const VarNode*> inside;
  for (const For* loop : loops) inside.insert(loop->var.get());
  for (const Expr& guard : Conjuncts(Substitute(block.where, BindingsOf(block)))) {
    const Expr simple = analyzer->Simplify(guard);
    const auto* order = As<Binary>(simple);
    const bool less = order && (order->op == BinaryOp::kLt || order->op == BinaryOp::kLe);
    if (!less) continue;
    const Expr slack = IndexConst(order->op == BinaryOp::kLt ? 1 : 0);
    const auto* low = As<VarNode>(order->lhs);
    const auto* high = As<VarNode>(order->rhs);
    if (low && inside.count(low) && !UsesAnyVar(order->rhs, inside)) {
      Expr& max = domain[low].max;
      max = max ? analyzer->Simplify(Min(max, order->rhs - slack)) : nullptr;
    } else if (high && inside.count(high) && !UsesAnyVar(order->lhs, inside)) {
      Expr& min = domain[high].min;
      min = min ? analyzer->Simplify(Max(min, order->lhs + slack)) : nullptr;
    }
  }
  return domain;
}

}  // namespace

Box TouchedBox(const Region& region, const Block& block, const IntervalMap& domain,
               Analyzer* analyzer) {
  VarMap bindings = BindingsOf(block);
  Box out;
  for (const Range& r : region->ranges) {
    Expr min = analyzer->Simplify(Substitute(r->min, bindings));
    ExprInterval box = EvalInterval(min, domain, analyzer);
    if (!IsOne(r->extent)) {
      Expr last = analyzer->Simplify(min + Substitute(r->extent, bindings) - 1);
      box.max = EvalInterval(last, domain, analyzer).max;
    }
    out.push_back(box);
  }
  return out;
}

Box TouchedBox(const Region& region, const Block& block, const std::vector<const For*>& loops,
               Analyzer* analyzer) {
  return TouchedBox(region, block, DomainWhere(loops, block, analyzer), analyzer);
}

std::vector<KnownSum> SumsOf(const Box& box, Analyzer* analyzer) {
  std::vector<KnownSum> out;
  for (const ExprInterval& d : box) {
    if (const Expr length = Length(d, analyzer)) out.push_back({d.min, length});
  }
  return out;
}

Box DomainBox(const Region& region, const Block& block, Analyzer* analyzer) {
  IntervalMap domain;
  for (const IterVar& v : block.iters) {
    domain[v->var.get()] = {v->min, analyzer->Simplify(v->min + v->extent - 1)};
  }
  Box out;
  for (const Range& r : region->ranges) {
    ExprInterval box = EvalInterval(r->min, domain, analyzer);
    box.max = EvalInterval(analyzer->Simplify(r->min + r->extent - 1), domain, analyzer).max;
    out.push_back(box);
  }
  return out;
}

std::optional<Box> FilledBox(const Region& region, const Block& block,
                             const std::vector<const For*>& loops, std::vector<Expr> guards,
                             Analyzer* analyzer) {
  const VarMap bindings = BindingsOf(block);
  Iterations iterations{{}, DomainOf(loops, analyzer), std::move(guards)};
  std::vector<Expr> extents;
  for (const Range& r : region->ranges) {
    iterations.indices.push_back(Substitute(r->min, bindings));
    extents.push_back(analyzer->Simplify(Substitute(r->extent, bindings)));
  }
  return tenon::FilledBox(std::move(iterations), extents, analyzer);
}

bool FillsItsBox(const Region& region, const Block& block, const std::vector<const For*>& loops,
                 Analyzer* analyzer) {
  return FilledBox(region, block, loops, {}, analyzer).has_value();
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

std::vector<Expr> GuardsAround(const Place& place, const std::vector<Stmt>& path) {
  const Block& block = *place.block();
  std::unordered_set<const VarNode*> own;
  for (const Stmt& s : place.path) {
    if (std::find(path.begin(), path.end(), s) != path.end()) continue;
    if (const auto* loop = As<For>(s)) own.insert(loop->var.get());
    if (const auto* let = As<Let>(s)) own.insert(let->var.get());
  }
  std::vector<Expr> out;
  for (const Expr& raw : Conjuncts(block.where)) {
    Expr c = Substitute(raw, BindingsOf(block));
    if (!UsesAnyVar(c, own)) out.push_back(c);
  }
  return out;
}

bool HoldsWhereRuns(const Place& place, const PrimFunc& func, const Expr& condition) {
  const Block& block = *place.block();
  Analyzer analyzer;
  Learn(func, &analyzer);
  Learn(place.path, &analyzer);
  for (const IterVar& v : block.iters) {
    analyzer.Assume(Ge(v->binding, v->min));
    analyzer.Assume(Lt(v->binding, v->min + v->extent));
  }
  for (const Expr& c : Conjuncts(block.where)) analyzer.Assume(Substitute(c, BindingsOf(block)));
  return analyzer.CanProve(condition);
}

std::vector<Expr> GuardsBesideDomain(const Place& place, const PrimFunc& func,
                                     const std::vector<Expr>& given) {
  const Block& block = *place.block();
  std::vector<Expr> out =
      block.where ? Conjuncts(Substitute(block.where, BindingsOf(block))) : std::vector<Expr>();
  if (out.empty()) return out;
  Analyzer analyzer;
  Learn(func, &analyzer);
  Learn(place.path, &analyzer);
  for (const IterVar& v : block.iters) {
    analyzer.Assume(Ge(v->binding, v->min));
    analyzer.Assume(Lt(v->binding, v->min + v->extent));
  }
  std::erase_if(out, [&](const Expr& c) {
    return std::any_of(given.begin(), given.end(),
                       [&](const Expr& g) { return StructuralEqual(g, c); }) ||
           analyzer.CanProve(c);
  });
  return out;
}

bool GuardsOnlyDomain(const Place& place, const PrimFunc& func, const std::vector<Expr>& given) {
  return GuardsBesideDomain(place, func, given).empty();
}

}  // namespace tenon::primitive
