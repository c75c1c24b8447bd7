#include "dependence/region.h"

#include <algorithm>

#include "ir/visit.h"

namespace tenon {

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

Region InLoops(const Region& region, const Block& block) {
  const VarMap bindings = BindingsOf(block);
  std::vector<Range> ranges;
  for (const Range& r : region->ranges) {
    ranges.push_back(
        RangeNode::Make(Substitute(r->min, bindings), Substitute(r->extent, bindings)));
  }
  return RegionNode::Make(region->buffer, std::move(ranges));
}

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
  std::vector<Expr> first, extents;
  for (const Range& r : region->ranges) {
    first.push_back(Substitute(r->min, bindings));
    extents.push_back(analyzer->Simplify(Substitute(r->extent, bindings)));
  }
  return FilledBox(first, extents, loops, std::move(guards), analyzer);
}

bool FillsItsBox(const Region& region, const Block& block, const std::vector<const For*>& loops,
                 Analyzer* analyzer) {
  return FilledBox(region, block, loops, {}, analyzer).has_value();
}

std::vector<Expr> GuardsAround(const Body::Place& place, const std::vector<Stmt>& path) {
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

// That the block's variables are in its domain, where it stands.
static void LearnDomain(const Body::Place& place, const PrimFunc& func, Analyzer* analyzer) {
  Learn(func, analyzer);
  Learn(place.path, analyzer);
  for (const IterVar& v : place.block()->iters) {
    analyzer->Assume(Ge(v->binding, v->min));
    analyzer->Assume(Lt(v->binding, v->min + v->extent));
  }
}

bool HoldsWhereRuns(const Body::Place& place, const PrimFunc& func, const Expr& condition) {
  const Block& block = *place.block();
  Analyzer analyzer;
  LearnDomain(place, func, &analyzer);
  for (const Expr& c : Conjuncts(block.where)) analyzer.Assume(Substitute(c, BindingsOf(block)));
  return analyzer.CanProve(condition);
}

std::vector<Expr> GuardsBesideDomain(const Body::Place& place, const PrimFunc& func,
                                     const std::vector<Expr>& given) {
  const Block& block = *place.block();
  std::vector<Expr> out =
      block.where ? Conjuncts(Substitute(block.where, BindingsOf(block))) : std::vector<Expr>();
  if (out.empty()) return out;
  Analyzer analyzer;
  LearnDomain(place, func, &analyzer);
  std::erase_if(out, [&](const Expr& c) {
    return std::any_of(given.begin(), given.end(),
                       [&](const Expr& g) { return StructuralEqual(g, c); }) ||
           analyzer.CanProve(c);
  });
  return out;
}

bool GuardsOnlyDomain(const Body::Place& place, const PrimFunc& func,
                      const std::vector<Expr>& given) {
  return GuardsBesideDomain(place, func, given).empty();
}

}  // namespace tenon
