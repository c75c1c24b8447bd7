// Rules about loops and blocks: what they promise to schedules.
#include <algorithm>
#include <unordered_set>

#include "arith/analyzer.h"
#include "loop/reducer.h"
#include "loop/verify_impl.h"

namespace tenon {

void CheckLoops(const VerifyContext& context) {
  context.ForEach([&](const NodeRef& node) {
    const auto* loop = As<For>(node);
    if (!loop) return;
    const bool constant =
        loop->for_kind == ForKind::kVectorized || loop->for_kind == ForKind::kUnrolled;
    if (constant && !AsInt(loop->extent) && !AsInt(Simplify(loop->extent))) {
      context.Error("the {} {} needs a constant extent but has {}", Name(loop->for_kind),
                    Describe(node), ToString(NodeRef(loop->extent)));
    }
  });
}

void CheckReductions(const VerifyContext& context) {
  context.ForEach([&](const NodeRef& node) {
    const auto* block = As<Block>(node);
    if (!block) return;
    if (!block->reducer.empty() && !FindReducer(block->reducer)) {
      context.Error("{} has the unknown reducer '{}'", Describe(node), block->reducer);
    }
    const bool reduces =
        std::any_of(block->iters.begin(), block->iters.end(),
                    [](const IterVar& v) { return v->iter_kind != IterKind::kSpatial; });
    if (block->init && !reduces) {
      context.Error("{} has an initial value but no reduce or ordered variable", Describe(node));
    }
  });
}

namespace {

struct ConstRange {
  int64_t min, max;
};

// Whether `e` can leave [0, extent) for values of `ranges`, which all occur together. Only a yes is
// sure.
bool Leaves(const Expr& e, const Expr& extent,
            const std::vector<std::pair<Var, ConstRange>>& ranges) {
  std::vector<Var> vars;
  for (const auto& [var, range] : ranges) vars.push_back(var);
  auto affine = DetectAffine(e, vars);
  if (!affine) return false;
  auto base = AsInt(Simplify(affine->base));
  if (!base) return false;
  __int128 lo = *base, hi = *base;
  for (size_t i = 0; i < ranges.size(); ++i) {
    auto c = AsInt(Simplify(affine->coefficients[i]));
    if (!c) return false;
    const __int128 a = static_cast<__int128>(*c) * ranges[i].second.min;
    const __int128 b = static_cast<__int128>(*c) * ranges[i].second.max;
    lo += std::min(a, b);
    hi += std::max(a, b);
  }
  const auto n = AsInt(Simplify(extent));
  return lo < 0 || (n && hi >= *n);
}

// Compares what the body of one block touches with what the block says. Inner blocks are taken at
// their word.
class RegionCheck final : public ChildVisitor {
 public:
  RegionCheck(const VerifyContext& context, const Block& block) : context_(context), block_(block) {
    for (const Region& r : block.reads) reads_.insert(r->buffer.get());
    for (const Region& r : block.writes) writes_.insert(r->buffer.get());
    for (const IterVar& iter : block.iters) AddRange(iter->var, iter->min, iter->extent);
    guards_ = block.where ? 1 : 0;
  }

  void Run() {
    if (block_.where) VisitChild(block_.where, FieldRole::kChild);
    if (block_.init) VisitChild(block_.init, FieldRole::kChild);
    VisitChild(block_.body, FieldRole::kChild);
  }

  void VisitChild(const NodeRef& child, FieldRole role) override {
    if (role == FieldRole::kBinds) {
      if (IsA<BufferNode>(child)) own_.insert(child.get());
      return;
    }
    if (const auto* block = As<Block>(child)) {
      for (const Region& r : block->reads) Read(r->buffer, {}, nullptr);
      for (const Region& r : block->writes) Write(r->buffer, {}, nullptr);
      return;
    }
    // What expressions share is looked at once in a statement, with and without guards.
    const bool statement = IsA<StmtNode>(child);
    if (statement) seen_[0].clear(), seen_[1].clear();
    if (!statement && !seen_[guards_ > 0 ? 1 : 0].insert(child.get()).second) return;
    Note(child);
    const size_t ranges = ranges_.size();
    if (const auto* loop = As<For>(child)) AddRange(loop->var, loop->min, loop->extent);
    const bool guard = IsA<If>(child) || IsA<While>(child) || IsA<Select>(child);
    guards_ += guard;
    child->VisitChildren(*this);
    guards_ -= guard;
    ranges_.resize(ranges);
    if (statement) seen_[0].clear(), seen_[1].clear();
  }

 private:
  void AddRange(const Var& var, const Expr& min, const Expr& extent) {
    const auto lo = AsInt(min), n = AsInt(extent);
    if (!lo || !n || *n <= 0) return;
    ranges_.push_back({var, {*lo, *lo + *n - 1}});
  }

  void Note(const NodeRef& node) {
    if (const auto* s = As<Load>(node)) Read(s->buffer, s->indices, s->mask);
    if (const auto* s = As<Store>(node)) Write(s->buffer, s->indices, s->mask);
    if (const auto* s = As<Atomic>(node)) Write(s->buffer, s->indices, nullptr);
    if (const auto* s = As<Copy>(node)) {
      Write(s->dst->buffer, {}, nullptr);
      Read(s->src->buffer, {}, nullptr);
    }
    if (const auto* s = As<CallFunc>(node)) {
      for (const Region& r : s->buffers) Read(r->buffer, {}, nullptr);
    }
  }

  void Read(const Buffer& buffer, const std::vector<Expr>& indices, const Expr& mask) {
    if (own_.count(buffer.get()) != 0) return;
    if (reads_.count(buffer.get()) == 0 && writes_.count(buffer.get()) == 0)
      return Missing("reads", buffer);
    CheckBox(reads_.count(buffer.get()) != 0 ? block_.reads : block_.writes, buffer, indices, mask);
  }

  void Write(const Buffer& buffer, const std::vector<Expr>& indices, const Expr& mask) {
    if (own_.count(buffer.get()) != 0) return;
    if (writes_.count(buffer.get()) == 0) return Missing("writes", buffer);
    CheckBox(block_.writes, buffer, indices, mask);
  }

  void Missing(const char* what, const Buffer& buffer) {
    if (!reported_.insert(buffer.get()).second) return;
    context_.Error("block '{}' {} '{}', which its {} leave out", block_.name, what, buffer->name,
                   what);
  }

  // An access that surely leaves the one box declared for its buffer.
  void CheckBox(const std::vector<Region>& regions, const Buffer& buffer,
                const std::vector<Expr>& indices, const Expr& mask) {
    if (indices.empty() || mask || guards_ > 0) return;
    const Region* box = nullptr;
    for (const Region& r : regions) {
      if (r->buffer != buffer) continue;
      if (box) return;
      box = &r;
    }
    for (size_t i = 0; box && i < indices.size(); ++i) {
      const Range& range = (*box)->ranges[i];
      if (indices[i]->dtype != range->min->dtype) continue;
      if (!Leaves(indices[i] - range->min, range->extent, ranges_)) continue;
      if (!reported_.insert(buffer.get()).second) return;
      context_.Error("block '{}' touches '{}' at {} = {}, outside the box it declares, {}",
                     block_.name, buffer->name, i, ToString(NodeRef(indices[i])),
                     ToString(NodeRef(range)));
    }
  }

  const VerifyContext& context_;
  const Block& block_;
  int guards_ = 0;
  std::unordered_set<const Node*> reads_, writes_, own_, reported_;
  std::unordered_set<const Node*> seen_[2];
  std::vector<std::pair<Var, ConstRange>> ranges_;
};

}  // namespace

void CheckBlockRegions(const VerifyContext& context) {
  context.ForEach([&](const NodeRef& node) {
    const auto* block = As<Block>(node);
    if (block && !block->opaque) RegionCheck(context, *block).Run();
  });
}

}  // namespace tenon
