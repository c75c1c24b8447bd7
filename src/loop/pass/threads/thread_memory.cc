#include "loop/pass/threads/thread_memory.h"

#include <algorithm>

#include "loop/pass/threads/place_syncs.h"
#include "loop/rewrite.h"
#include "loop/threads.h"

namespace tenon {

namespace {

// One dimension of a buffer: what all its indices have in common, and how large the rest is.
struct Dimension {
  std::vector<int64_t> steps;  // of the axes' variables
  int64_t last = 0;            // the largest rest
  bool shrinks = true;
};
struct Use {
  std::vector<Dimension> dims;
  bool seen = false;
};
using Uses = std::unordered_map<const BufferNode*, Use>;

// Reads how private buffers are used. uses has those that may shrink, each dimension as all
// accesses seen so far agree on it; a buffer whose address or region is asked for is there no more.
class Finder final : public ScopedRewriter {
 public:
  Finder(const PrimFunc& func, std::vector<Var> axes) : axes_(std::move(axes)) {
    Learn(func, &analyzer_);
  }
  Uses uses;

 private:
  Stmt VisitStmt(const Stmt& stmt) override {
    if (const auto* alloc = As<Alloc>(stmt)) {
      const Buffer& b = alloc->buffer;
      if (IsThreadPrivate(*b) && !b->layout && b->strides.empty())
        uses[b.get()].dims.resize(b->shape.size());
    }
    if (const auto* s = As<Store>(stmt)) See(s->buffer, s->indices);
    if (const auto* s = As<Atomic>(stmt)) See(s->buffer, s->indices);
    return Children(stmt);
  }
  Expr VisitExpr(const Expr& expr) override {
    PreOrder(expr, [&](const NodeRef& n) {
      if (const auto* load = As<Load>(n)) See(load->buffer, load->indices);
      const auto* call = As<Call>(n);
      const auto* address =
          call && call->intrinsic == Intrinsic::kBufferData ? As<Load>(call->args[0]) : nullptr;
      if (address) uses.erase(address->buffer.get());
      return true;
    });
    return expr;
  }
  // A region is a box of the buffer as it is.
  NodeRef VisitRegion(const Region& region) override {
    uses.erase(region->buffer.get());
    return region;
  }

  void See(const Buffer& buffer, const std::vector<Expr>& indices) {
    auto it = uses.find(buffer.get());
    if (it == uses.end()) return;
    const bool first = !std::exchange(it->second.seen, true);
    for (size_t d = 0; d < indices.size(); ++d) SeeIndex(indices[d], first, &it->second.dims[d]);
  }

  void SeeIndex(const Expr& index, bool first, Dimension* dim) {
    if (!dim->shrinks) return;
    auto affine = index->dtype.IsIndex() ? DetectAffine(index, axes_) : std::nullopt;
    std::vector<int64_t> steps;
    for (size_t i = 0; affine && i < axes_.size(); ++i) {
      auto step = AsInt(analyzer_.Simplify(affine->coefficients[i]));
      if (!step) affine.reset();
      steps.push_back(step.value_or(0));
    }
    dim->shrinks = affine.has_value() && (first || steps == dim->steps);
    if (!dim->shrinks) return;
    const Interval rest = analyzer_.ConstBounds(analyzer_.Simplify(affine->base));
    dim->shrinks = rest.min >= 0 && rest.max != Interval::kPosInf;
    dim->steps = std::move(steps);
    dim->last = std::max(dim->last, rest.max);
  }

  std::vector<Var> axes_;
};

// small_ has the buffers that get smaller, with what is known of each dimension; all uses of such a
// buffer are rewritten together with its allocation, in one walk.
class Shrinker {
 public:
  Shrinker(const Uses& uses, std::vector<Var> axes) : axes_(std::move(axes)) {
    for (const auto& [buffer, use] : uses) {
      auto small = MakeRef<BufferNode>(*buffer);
      bool any = false;
      for (size_t d = 0; use.seen && d < use.dims.size(); ++d) {
        if (!Shrinks(use.dims[d])) continue;
        small->shape[d] = IndexConst(use.dims[d].last + 1);
        any = true;
      }
      if (any) small_[buffer] = {small, use.dims};
    }
  }

  Stmt operator()(const Stmt& stmt) const {
    if (small_.empty()) return stmt;
    return PostOrderRewrite(stmt, [this](const NodeRef& n) -> NodeRef {
      if (const auto* s = As<Load>(n)) {
        const Small* to = Find(s->buffer);
        return to ? NodeRef(Load::Make(to->buffer, Indices(*to, s->indices), s->mask)) : n;
      }
      if (const auto* s = As<Store>(n)) {
        const Small* to = Find(s->buffer);
        return to ? NodeRef(Store::Make(to->buffer, Indices(*to, s->indices), s->value, s->mask))
                  : n;
      }
      if (const auto* s = As<Atomic>(n)) {
        const Small* to = Find(s->buffer);
        return to ? NodeRef(Atomic::Make(s->op, to->buffer, Indices(*to, s->indices), s->value,
                                         s->order, s->scope))
                  : n;
      }
      const auto* alloc = As<Alloc>(n);
      const Small* to = alloc ? Find(alloc->buffer) : nullptr;
      return to ? NodeRef(Alloc::Make(to->buffer, alloc->body)) : n;
    });
  }

 private:
  struct Small {
    Buffer buffer;
    std::vector<Dimension> dims;
  };

  static bool Shrinks(const Dimension& dim) {
    return dim.shrinks &&
           std::any_of(dim.steps.begin(), dim.steps.end(), [](int64_t step) { return step != 0; });
  }

  const Small* Find(const Buffer& buffer) const {
    auto it = small_.find(buffer.get());
    return it == small_.end() ? nullptr : &it->second;
  }

  std::vector<Expr> Indices(const Small& to, std::vector<Expr> indices) const {
    for (size_t d = 0; d < indices.size(); ++d) {
      if (Shrinks(to.dims[d])) indices[d] = Simplify(DetectAffine(indices[d], axes_)->base);
    }
    return indices;
  }

  std::vector<Var> axes_;
  std::unordered_map<const BufferNode*, Small> small_;
};

}  // namespace

Stmt ShrinkThreadMemory(const PrimFunc& func, const Stmt& nest) {
  std::vector<Var> axes;
  Stmt inner = nest;
  while (const auto* loop = As<For>(inner)) {
    if (loop->for_kind != ForKind::kThread) break;
    axes.push_back(loop->var);
    inner = loop->body;
  }
  Finder finder(func, axes);
  finder.Rewrite(nest);
  return Shrinker(finder.uses, axes)(nest);
}

}  // namespace tenon
