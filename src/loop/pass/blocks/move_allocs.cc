#include "loop/pass/blocks/move_allocs.h"

#include <utility>

#include "dependence/strides.h"
#include "loop/rewrite.h"

namespace tenon {

namespace {

// Carries placements out. in_scope_ are those of the new buffers whose allocation stands around the
// statement that is being rewritten.
class Mover final : public ScopedRewriter {
 public:
  explicit Mover(const Module& module) : module_(module) {}

  void Add(const Buffer& old, Placement placement) {
    around_[placement.around].push_back(placement.buffer);
    placements_[old.get()] = std::move(placement);
  }

 private:
  Stmt VisitStmt(const Stmt& stmt) override {
    auto it = around_.find(stmt.get());
    if (it == around_.end()) return Rewritten(stmt);
    for (const Buffer& b : it->second) in_scope_.insert(b.get());
    Stmt out = Rewritten(stmt);
    for (auto b = it->second.rbegin(); b != it->second.rend(); ++b) {
      in_scope_.erase(b->get());
      if (out) out = Alloc::Make(*b, out);
    }
    return out;
  }

  // What a block declares but does not touch may be allocated elsewhere now.
  Stmt WithRegionsInScope(const Stmt& stmt) const {
    auto elsewhere = [&](const Region& r) {
      const Placement* p = Find(r->buffer);
      return p != nullptr && in_scope_.count(p->buffer.get()) == 0;
    };
    Block block = *As<Block>(stmt);
    const size_t gone =
        std::erase_if(block.reads, elsewhere) + std::erase_if(block.writes, elsewhere);
    return gone == 0 ? stmt : Block::Make(std::move(block));
  }

  Stmt Rewritten(const Stmt& stmt) {
    if (const auto* alloc = As<Alloc>(stmt); alloc && Find(alloc->buffer))
      return VisitStmt(alloc->body);
    if (const auto* store = As<Store>(stmt); store && Find(store->buffer)) {
      Expr mask = store->mask ? VisitExpr(store->mask) : nullptr;
      return Store::Make(VisitBuffer(store->buffer), Moved(store->buffer, store->indices),
                         VisitExpr(store->value), mask);
    }
    if (const auto* atomic = As<Atomic>(stmt); atomic && Find(atomic->buffer)) {
      return Atomic::Make(atomic->op, VisitBuffer(atomic->buffer),
                          Moved(atomic->buffer, atomic->indices), VisitExpr(atomic->value),
                          atomic->order, atomic->scope);
    }
    const Stmt out = Children(IsA<Block>(stmt) ? WithRegionsInScope(stmt) : stmt);
    const auto* call = As<CallFunc>(stmt);
    return call ? WithStrides(*call, out) : out;
  }

  // The call with the strides of what it is passed now.
  Stmt WithStrides(const CallFunc& was, const Stmt& now) const {
    const Func callee = module_.Find(was.callee);
    if (!callee) return now;
    std::vector<Expr> scalars = As<CallFunc>(now)->scalars;
    for (size_t i = 0; i < was.buffers.size(); ++i) {
      const Placement* p = Find(was.buffers[i]->buffer);
      const auto dims = p ? StrideDims(was, *callee, i) : std::nullopt;
      if (!dims) continue;
      const std::vector<Expr> strides = StridesOf(*p->buffer);
      for (const StrideDim& s : *dims) scalars[s.scalar] = strides[s.dim];
    }
    return CallFunc::Make(was.callee, As<CallFunc>(now)->buffers, std::move(scalars));
  }

  const Placement* Find(const Buffer& b) const {
    auto it = placements_.find(b.get());
    return it == placements_.end() ? nullptr : &it->second;
  }

  Buffer VisitBuffer(const Buffer& b) override {
    const Placement* p = Find(b);
    return p ? p->buffer : b;
  }

  static Expr Minus(const Expr& index, const Expr& origin) {
    if (!origin) return index;
    Expr by = CastExpr::Make(index->dtype.Element(), origin);
    return index - (index->dtype.IsVector() ? Broadcast::Make(by, index->dtype.lanes) : by);
  }

  std::vector<Expr> Moved(const Buffer& b, const std::vector<Expr>& indices) {
    const Placement* p = Find(b);
    std::vector<Expr> out;
    for (size_t d = 0; d < indices.size(); ++d)
      out.push_back(Minus(VisitExpr(indices[d]), p->origin[d]));
    return out;
  }

  Expr VisitExpr(const Expr& expr) override {
    return PostOrderRewrite(expr, [&](const NodeRef& n) -> NodeRef {
      const auto* load = As<Load>(n);
      const Placement* p = load ? Find(load->buffer) : nullptr;
      if (!p) return n;
      std::vector<Expr> indices;  // rewritten already
      for (size_t d = 0; d < load->indices.size(); ++d)
        indices.push_back(Minus(load->indices[d], p->origin[d]));
      return Load::Make(p->buffer, std::move(indices), load->mask);
    });
  }

  NodeRef VisitRegion(const Region& region) override {
    const Placement* p = Find(region->buffer);
    if (!p) return ScopedRewriter::VisitRegion(region);
    std::vector<Range> ranges;
    for (size_t d = 0; d < region->ranges.size(); ++d) {
      const Range& r = region->ranges[d];
      ranges.push_back(
          RangeNode::Make(Minus(VisitExpr(r->min), p->origin[d]), VisitExpr(r->extent)));
    }
    return RegionNode::Make(p->buffer, std::move(ranges));
  }

  const Module& module_;
  std::unordered_map<const StmtNode*, std::vector<Buffer>> around_;
  std::unordered_map<const BufferNode*, Placement> placements_;
  std::unordered_set<const BufferNode*> in_scope_;  // of those placed
};

}  // namespace

Stmt MoveAllocs(const Stmt& body, std::vector<std::pair<Buffer, Placement>> placements,
                const Module& module) {
  Mover mover(module);
  for (auto& [buffer, placement] : placements) mover.Add(buffer, std::move(placement));
  return mover.Rewrite(body);
}

}  // namespace tenon
