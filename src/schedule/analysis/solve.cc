#include "schedule/analysis/solve.h"

#include <numeric>

#include "ir/visit.h"

namespace tenon::primitive {

namespace {

// e = coefficient * iters[iter] + base, nothing else of the iteration in it.
struct LoneVar {
  size_t iter;
  int64_t coefficient;
  Expr base;
};

std::optional<LoneVar> FindLoneVar(const Block& block, const Expr& e) {
  std::vector<Var> vars;
  for (const IterVar& v : block.iters) vars.push_back(v->var);
  std::optional<AffineForm> form = DetectAffine(e, vars);
  if (!form) return std::nullopt;
  std::optional<LoneVar> found;
  for (size_t i = 0; i < vars.size(); ++i) {
    std::optional<int64_t> c = AsInt(form->coefficients[i]);
    if (c && *c == 0) continue;
    if (!c || *c < 0 || found) return std::nullopt;
    found = LoneVar{i, *c, form->base};
  }
  return found;
}

}  // namespace

IterRanges TouchingIters(const Block& block, const Region& region, const Box& box,
                         Analyzer* analyzer) {
  IterRanges out = WholeDomain(block);
  for (size_t d = 0; d < box.size(); ++d) {
    const Range& range = region->ranges[d];
    if (!box[d].min || !box[d].max) continue;
    std::optional<LoneVar> lone = FindLoneVar(block, range->min);
    if (!lone || UsesVar(range->extent, block.iters[lone->iter]->var.get())) continue;
    if (out[lone->iter].min) continue;
    // c * v + base <= box.max and c * v + base + extent - 1 >= box.min
    Expr c = IndexConst(lone->coefficient);
    Expr least = box[d].min - lone->base - range->extent + 1;
    Expr most = box[d].max - lone->base;
    out[lone->iter] = {analyzer->Simplify(CeilDiv(least, c)), analyzer->Simplify(most / c)};
  }
  return out;
}

std::vector<int64_t> TouchingSteps(const Block& block, const Region& region, const Region& touched,
                                   const std::vector<const For*>& loops, const IterRanges& ranges,
                                   Analyzer* analyzer) {
  std::vector<Var> vars;
  for (const For* loop : loops) vars.push_back(loop->var);
  std::vector<int64_t> out(ranges.size(), 1);
  for (size_t d = 0; d < region->ranges.size(); ++d) {
    const Range& range = region->ranges[d];
    const std::optional<LoneVar> lone = FindLoneVar(block, range->min);
    if (!lone || lone->coefficient != 1 || !ranges[lone->iter].min) continue;
    if (!IsOne(range->extent) || !IsOne(touched->ranges[d]->extent)) continue;
    const Expr beyond_first = touched->ranges[d]->min - lone->base - ranges[lone->iter].min;
    const std::optional<AffineForm> form = DetectAffine(analyzer->Simplify(beyond_first), vars);
    if (!form) continue;
    const std::optional<int64_t> base = AsInt(analyzer->Simplify(form->base));
    if (!base) continue;
    int64_t step = *base;
    for (const Expr& c : form->coefficients) step = std::gcd(step, AsInt(c).value_or(1));
    out[lone->iter] = step;
  }
  return out;
}

std::optional<IterRanges> EnclosedIters(const Block& block, const Region& region, const Box& box,
                                        Analyzer* analyzer) {
  IterRanges out = WholeDomain(block);
  IntervalMap domain;
  for (const IterVar& v : block.iters) {
    domain[v->var.get()] = {v->min, analyzer->Simplify(v->min + v->extent - 1)};
  }
  for (size_t d = 0; d < box.size(); ++d) {
    const Range& range = region->ranges[d];
    ExprInterval all = EvalInterval(range->min, domain, analyzer);
    all.max =
        EvalInterval(analyzer->Simplify(range->min + range->extent - 1), domain, analyzer).max;
    if (Contains(box[d], all, analyzer)) continue;
    std::optional<LoneVar> lone = FindLoneVar(block, range->min);
    if (!lone || lone->coefficient != 1 || !IsOne(range->extent)) return std::nullopt;
    if (out[lone->iter].min || !box[d].min || !box[d].max) return std::nullopt;
    out[lone->iter] = {analyzer->Simplify(box[d].min - lone->base),
                       analyzer->Simplify(box[d].max - lone->base)};
  }
  return out;
}

void UniteRanges(const IterRanges& more, IterRanges* ranges, Analyzer* analyzer) {
  for (size_t i = 0; i < ranges->size(); ++i) {
    ExprInterval& r = (*ranges)[i];
    if (!r.min || !r.max || !more[i].min || !more[i].max) {
      r = {};
    } else {
      r = Union(r, more[i], analyzer);
    }
  }
}

}  // namespace tenon::primitive
