#include "loop/pass/blocks/empty_reductions.h"

#include <unordered_set>

#include "arith/conditions.h"
#include "ir/visit.h"
#include "loop/edit.h"
#include "loop/rewrite.h"

namespace tenon {

namespace {

using Vars = std::unordered_set<const VarNode*>;

bool IsReduced(const IterVar& iter) { return iter->iter_kind != IterKind::kSpatial; }

// One reduction: the nest that its init needs. Loops over what is reduced go, and with them what
// conditions say of it. Null where something in between is in the way.
class InitNest {
 public:
  explicit InitNest(const Block& block) : block_(block) {}

  Stmt Of(const Stmt& stmt) {
    if (stmt.get() == &block_) return Init();
    if (const auto* loop = As<For>(stmt)) return OfLoop(*loop);
    if (const auto* branch = As<If>(stmt)) return OfBranch(*branch);
    if (IsA<Block>(stmt)) return nullptr;
    Stmt inner;
    for (const Stmt& child : ChildrenOf(stmt)) {
      if (Holds(child)) inner = Of(child);
    }
    if (!inner) return nullptr;
    if (const auto* let = As<Let>(stmt)) return Of(*let, inner);
    if (const auto* alloc = As<Alloc>(stmt))
      return UsesBuffer(inner, alloc->buffer.get()) ? nullptr : inner;
    if (const auto* bind = As<Bind>(stmt))
      return UsesBuffer(inner, bind->buffer.get()) ? nullptr : inner;
    return inner;
  }

 private:
  bool Holds(const Stmt& stmt) const {
    return AnyStmt(stmt, [&](const NodeRef& n) { return n.get() == &block_; });
  }

  bool IsSpatial(const VarNode* var) const {
    for (const IterVar& iter : block_.iters) {
      if (!IsReduced(iter) && UsesVar(iter->binding, var)) return true;
    }
    return false;
  }

  // The condition without what it says of loops that are gone; null where nothing is left.
  Expr Kept(const Expr& condition) const {
    std::vector<Expr> kept;
    for (const Expr& c : Conjuncts(condition)) {
      if (!UsesAnyVar(c, gone_)) kept.push_back(c);
    }
    return Conjunction(kept);
  }

  Stmt Init() {
    VarMap bindings;
    for (const IterVar& iter : block_.iters) {
      bindings[iter->var.get()] = IsReduced(iter) ? iter->min : iter->binding;
      if (IsReduced(iter)) gone_.insert(iter->var.get());
    }
    const Expr where = block_.where ? Kept(block_.where) : nullptr;
    const Stmt init = Substitute(block_.init, bindings);
    return where ? If::Make(Substitute(where, bindings), init) : init;
  }

  Stmt OfLoop(const For& loop) {
    const bool stays = IsSpatial(loop.var.get());
    if (!stays) gone_.insert(loop.var.get());
    if (stays && (UsesAnyVar(loop.min, gone_) || UsesAnyVar(loop.extent, gone_))) return nullptr;
    const Stmt inner = Of(loop.body);
    if (!inner || !stays) return inner;
    const Var own = VarNode::Make(loop.var->name + ".none");
    return For::Make(own, loop.min, loop.extent, loop.for_kind,
                     Substitute(inner, {{loop.var.get(), Expr(own)}}), loop.attrs, loop.thread);
  }

  Stmt OfBranch(const If& branch) {
    if (!Holds(branch.then_body)) return nullptr;
    const Stmt inner = Of(branch.then_body);
    const Expr condition = Kept(branch.condition);
    return inner && condition ? If::Make(condition, inner) : inner;
  }

  Stmt Of(const Let& let, const Stmt& inner) const {
    if (!UsesVar(inner, let.var.get())) return inner;
    if (UsesAnyVar(let.value, gone_)) return nullptr;
    return Substitute(inner, {{let.var.get(), let.value}});
  }

  const Block& block_;
  Vars gone_;
};

class Initializer final : public ScopedRewriter {
 public:
  explicit Initializer(const PrimFunc& func) { Learn(func, &analyzer_); }

 private:
  Stmt VisitStmt(const Stmt& stmt) override {
    const auto* loop = As<For>(stmt);
    if (!loop) return Children(stmt);
    std::vector<Stmt> list;
    AnyStmt(stmt, [&](const NodeRef& n) {
      const auto* block = As<Block>(n);
      if (block && block->init && BeginsAt(*loop, *block)) {
        const Expr empty = IsEmpty(*block);
        const Stmt init = empty ? InitNest(*block).Of(stmt) : nullptr;
        if (init) list.push_back(If::Make(empty, init));
      }
      return false;
    });
    around_.insert(loop->var.get());
    list.push_back(Children(stmt));
    around_.erase(loop->var.get());
    return list.size() == 1 ? list[0] : Seq::Make(std::move(list));
  }

  // Whether the loop is the outermost of those over what the block reduces.
  bool BeginsAt(const For& loop, const Block& block) const {
    bool here = false;
    for (const IterVar& iter : block.iters) {
      if (!IsReduced(iter)) continue;
      if (UsesAnyVar(iter->binding, around_)) return false;
      here |= UsesVar(iter->binding, loop.var.get());
    }
    return here;
  }

  // That one of the domains has nothing in it; null where all have something.
  Expr IsEmpty(const Block& block) {
    Expr any;
    for (const IterVar& iter : block.iters) {
      if (!IsReduced(iter) || analyzer_.CanProve(Lt(IndexConst(0), iter->extent))) continue;
      const Expr empty = Le(iter->extent, IndexConst(0));
      any = any ? Or(any, empty) : empty;
    }
    return any;
  }

  Vars around_;  // variables of the loops around
};

}  // namespace

Func InitializeEmptyReductions(const Func& func) {
  if (!func->body) return func;
  return WithBody(func, Initializer(*func).Rewrite(func->body));
}

}  // namespace tenon
