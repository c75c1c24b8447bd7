#include "loop/pass/blocks/private_memory.h"

#include <string>
#include <vector>

#include "loop/rewrite.h"
#include "loop/threads.h"

namespace tenon {

namespace {

// Memory of that scope is one for all threads along the axis.
bool IsInCommon(Scope scope, ThreadAxis axis) {
  const Holder holder = HolderOf(scope);
  return (holder == Holder::kBlock && IsThreadAxis(axis)) ||
         (holder == Holder::kWarp && axis == kLaneAxis);
}

// Goes over one function. around_ are the allocations around the statement, the innermost last;
// each is called as loops' lists call it, and made_ keeps alive what was_ knows by address.
class Giver final : public ScopedRewriter {
 public:
  explicit Giver(const PrimFunc& func) : names_(func) {}

 private:
  Stmt VisitStmt(const Stmt& stmt) override {
    if (IsA<Block>(stmt)) return stmt;
    if (const auto* alloc = As<Alloc>(stmt)) return OnAlloc(*alloc, stmt);
    const auto* loop = As<For>(stmt);
    return Children(loop && loop->attrs.Has(kPrivateAttr) ? WithOwn(*loop) : stmt);
  }

  // Without what nobody uses any more; one of those in its place has its name.
  Stmt OnAlloc(const Alloc& alloc, const Stmt& stmt) {
    around_.push_back(alloc.buffer);
    Stmt out = Children(stmt);
    around_.pop_back();
    const auto* now = As<Alloc>(out);
    const bool gone = now && now->body != alloc.body && !UsesBuffer(now->body, alloc.buffer.get());
    if (!gone) return out;
    Buffer first;
    PreOrder(now->body, [&](const NodeRef& n) {
      const auto* own = As<Alloc>(n);
      if (!first && own && was_.count(own->buffer.get()) &&
          NameOf(own->buffer) == alloc.buffer->name)
        first = own->buffer;
      return IsA<StmtNode>(n) && !first;
    });
    if (!first || was_.count(alloc.buffer.get())) return now->body;
    auto named = MakeRef<BufferNode>(*first);
    named->name = alloc.buffer->name;
    return SubstituteBuffers(now->body, {{first.get(), Buffer(named)}});
  }

  // In the loops' lists.
  const std::string& NameOf(const Buffer& b) const {
    auto it = was_.find(b.get());
    return it == was_.end() ? b->name : it->second;
  }

  Stmt WithOwn(const For& loop) {
    Stmt body = loop.body;
    for (const std::string& name : loop.attrs.Get<std::vector<std::string>>(kPrivateAttr, {})) {
      const Buffer had = Find(name);
      if (!had || !UsesBuffer(body, had.get())) continue;
      if (loop.for_kind == ForKind::kThread && IsInCommon(had->scope, loop.thread)) continue;
      auto own = MakeRef<BufferNode>(*had);
      own->name = names_.Fresh(name);
      was_[own.get()] = name;
      made_.push_back(own);
      body = Alloc::Make(own, SubstituteBuffers(body, {{had.get(), Buffer(own)}}));
    }
    Attrs attrs = loop.attrs;
    attrs.Erase(kPrivateAttr);
    return For::Make(loop.var, loop.min, loop.extent, loop.for_kind, body, attrs, loop.thread);
  }

  Buffer Find(const std::string& name) const {
    for (size_t i = around_.size(); i-- > 0;) {
      if (NameOf(around_[i]) == name) return around_[i];
    }
    return nullptr;
  }

  NameSupply names_;
  std::vector<Buffer> around_, made_;
  std::unordered_map<const BufferNode*, std::string> was_;  // of those made here
};

}  // namespace

Stmt GivePrivateMemory(const Func& func) { return Giver(*func).Rewrite(func->body); }

}  // namespace tenon
