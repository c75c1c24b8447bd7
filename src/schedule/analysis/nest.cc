#include "schedule/analysis/nest.h"

#include <algorithm>
#include <unordered_set>

#include "ir/visit.h"

namespace tenon::primitive {

IterRanges WholeDomain(const Block& block) { return IterRanges(block.iters.size()); }

namespace {

struct Run {
  Expr first, count;
  Expr last;         // where it ends before count is reached; null: it does not
  int64_t step = 1;  // from one to the next
};

// Where a variable starts and how often it runs to cover the range within its domain.
Run RunOver(const IterVar& v, const ExprInterval& range, int64_t step, Widen widen,
            Analyzer* analyzer) {
  const Expr extent = analyzer->Simplify(v->extent);
  Run whole{v->min, AsInt(extent) ? extent : v->extent, nullptr};
  if (!range.min || !range.max) return whole;
  ExprInterval wide = widen != Widen::kNo ? RelaxToConstantLength(range, analyzer) : range;
  if (step > 1 && StructuralEqual(wide.min, range.min)) {
    if (const auto length = AsInt(Length(wide, analyzer)); length && *length >= 1) {
      return {wide.min, IndexConst((*length - 1) / step + 1), nullptr, step};
    }
  }
  ExprInterval domain{v->min, analyzer->Simplify(v->min + v->extent - 1)};
  Run run{wide.min, Length(wide, analyzer), nullptr};
  if (!AsInt(run.count)) {
    int64_t most = analyzer->ConstBounds(run.count).max;
    if (most != Interval::kPosInf && most >= 1) {
      run.count = IndexConst(most);
      if (widen == Widen::kNo) run.last = range.max;
    }
  }
  bool all = widen != Widen::kNo ? analyzer->CanProve(Le(v->extent, run.count))
                                 : Contains(range, domain, analyzer);
  if (!all) return run;
  const bool counted = widen == Widen::kWhole && AsInt(run.count) && !AsInt(extent);
  return counted ? Run{v->min, run.count, nullptr} : whole;
}

}  // namespace

Stmt MakeNest(const Block& block, const IterRanges& ranges, Widen widen, Body* body,
              Analyzer* analyzer, const std::vector<int64_t>& steps) {
  Block copy = block;
  copy.where = nullptr;
  std::vector<std::pair<Var, Expr>> loops;
  for (size_t i = 0; i < copy.iters.size(); ++i) {
    IterVar& v = copy.iters[i];
    Run run = RunOver(v, ranges[i], steps.empty() ? 1 : steps[i], widen, analyzer);
    Expr binding = run.first;
    if (!IsOne(run.count)) {
      Var loop = VarNode::Make(body->NewVarName(block.name + ".ax" + std::to_string(i)));
      // A loop of open extent is the variable's even where it has no more than one turn.
      binding = run.first + loop * IndexConst(run.step);
      if (!AsInt(run.count)) binding = analyzer->Simplify(binding);
      analyzer->Bind(loop, IndexConst(0), run.count);
      loops.emplace_back(loop, run.count);
      if (AsInt(run.count)) binding = analyzer->Simplify(binding);
    }
    copy.where = AndAlso(copy.where, BoundsGuard(binding, v->min, v->extent, analyzer));
    if (run.last && !analyzer->CanProve(Le(binding, run.last))) {
      copy.where = AndAlso(copy.where, analyzer->Simplify(Le(binding, run.last)));
    }
    v = IterVarNode::Make(v->var, v->iter_kind, v->min, v->extent, binding);
  }
  Stmt out = Block::Make(std::move(copy));
  for (size_t i = loops.size(); i-- > 0;) {
    out = For::Make(loops[i].first, IndexConst(0), loops[i].second, ForKind::kSerial, out);
  }
  return out;
}

Stmt Inherit(const Stmt& nest, const std::vector<Expr>& conditions, Analyzer* analyzer) {
  const Node* inner = nest.get();
  std::vector<size_t> assumed;
  while (const auto* loop = As<For>(inner)) inner = loop->body.get();
  const auto* block = As<Block>(inner);
  TN_CHECK(block != nullptr);
  for (const IterVar& v : block->iters) {
    assumed.push_back(analyzer->Assume(Ge(v->binding, v->min)));
    assumed.push_back(analyzer->Assume(Lt(v->binding, v->min + v->extent)));
  }
  Expr added;
  for (const Expr& c : conditions) {
    if (!analyzer->CanProve(c)) added = AndAlso(added, c);
  }
  for (size_t i = assumed.size(); i-- > 0;) analyzer->Retract(assumed[i]);
  return added ? AddGuard(nest, added) : nest;
}

IterRanges RangesOver(const Block& block, const std::vector<const For*>& loops,
                      Analyzer* analyzer) {
  IntervalMap domain = DomainOf(loops, analyzer);
  IterRanges out;
  for (const IterVar& v : block.iters) out.push_back(EvalInterval(v->binding, domain, analyzer));
  return out;
}

Stmt AnchorOf(const Place& place, const std::vector<const Place*>& others) {
  size_t depth = 0;  // statements of the path that are shared
  for (const Place* other : others) {
    if (other == &place) continue;
    size_t shared = 0;
    size_t most = std::min(place.path.size(), other->path.size());
    while (shared < most && place.path[shared] == other->path[shared]) ++shared;
    depth = std::max(depth, shared);
  }
  for (size_t i = depth; i < place.path.size(); ++i) {
    if (IsA<For>(place.path[i])) return place.path[i];
  }
  return place.stmt;
}

Block WithFreshVars(const Block& block, const std::string& suffix, Body* body) {
  VarMap vars;
  std::vector<Var> fresh;
  for (const IterVar& v : block.iters) {
    fresh.push_back(VarNode::Make(body->NewVarName(v->var->name + suffix), v->var->dtype));
    vars[v->var.get()] = fresh.back();
  }
  BlockRef copy = Substitute(Block::Make(block), vars);
  Block out = *copy;
  for (size_t i = 0; i < out.iters.size(); ++i) {
    const IterVar& v = out.iters[i];
    out.iters[i] = IterVarNode::Make(fresh[i], v->iter_kind, v->min, v->extent, v->binding);
  }
  return out;
}

std::vector<Region> RegionsIn(const std::vector<Region>& regions, const NodeRef& part) {
  std::vector<Region> out;
  for (const Region& r : regions) {
    if (part && UsesBuffer(part, r->buffer.get())) out.push_back(r);
  }
  return out;
}

std::vector<Region> RegionsOfInit(const Block& block) {
  std::unordered_set<const VarNode*> reduced;
  for (const IterVar& v : block.iters) {
    if (v->iter_kind == IterKind::kReduce) reduced.insert(v->var.get());
  }
  std::vector<Region> out = RegionsIn(block.reads, block.init);
  std::erase_if(out, [&](const Region& r) { return UsesAnyVar(r, reduced); });
  return out;
}

Region PointRegion(const Buffer& buffer, const std::vector<Expr>& indices) {
  std::vector<Range> ranges;
  for (const Expr& i : indices) ranges.push_back(RangeNode::Make(i, IndexConst(1)));
  return RegionNode::Make(buffer, std::move(ranges));
}

}  // namespace tenon::primitive
