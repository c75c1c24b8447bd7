// How statements are taken apart and put together, once for all passes.
//
// ScopedRewriter walks a tree from the root and keeps an analyzer that knows what holds where it
// stands: ranges of loops and block variables are bound on the way in (names are unique, so they
// need not be unbound), conditions of ifs and blocks are assumed on the way in and retracted on the
// way out. A pass overrides what it changes and asks the analyzer. In
//
//   for one in 3..+1, i in 0..16 {
//     if i < 16 { C[i + zero + one - 3] = A[i] } else { C[i] = 0f32 }
//     if i >= 8 {
//       if i < 8 { C[i] = 1f32 }
//     }
//   }
//
// the visit of `i < 16` finds 0 <= i < 16 known, that of `i < 8` finds i >= 8, and simplify, which
// asks about every condition, leaves
//
//   for i in 0..16 {
//     C[i] = A[i]
//   }
//
// A condition that reads memory is never assumed: it held when it was evaluated, no longer. A node
// in which nothing changes comes back as itself, so "nothing to do" costs no memory and is seen by
// comparing pointers.

#include "loop/rewrite.h"

namespace tenon {

Stmt ScopedRewriter::Rewrite(const Stmt& stmt) { return stmt ? VisitStmt(stmt) : stmt; }

void ScopedRewriter::Enter(const Stmt& stmt) {
  if (const auto* loop = As<For>(stmt)) {
    if (IsPure(loop->min) && IsPure(loop->extent))
      analyzer_.Bind(loop->var, loop->min, loop->extent);
  } else if (const auto* let = As<Let>(stmt)) {
    bool arithmetic = let->var->dtype.IsIndex() || let->var->dtype.IsInt();
    if (arithmetic && IsPure(let->value)) analyzer_.BindValue(let->var, let->value);
  } else if (const auto* block = As<Block>(stmt)) {
    for (const IterVar& iter : block->iters) analyzer_.Bind(iter->var, iter->min, iter->extent);
  }
}

Stmt ScopedRewriter::ChildrenOfIf(const If& node, const Stmt& stmt) {
  Expr condition = VisitExpr(node.condition);
  auto under = [&](const Expr& fact, const Stmt& body) {
    if (!body) return body;
    // What memory said when the condition was evaluated need not hold for the whole body.
    bool lasting = IsPure(fact);
    size_t token = lasting ? analyzer_.Assume(fact) : 0;
    Stmt out = VisitStmt(body);
    if (lasting) analyzer_.Retract(token);
    return out;
  };
  Stmt then_body = under(node.condition, node.then_body);
  Stmt else_body = under(Not(node.condition), node.else_body);
  if (condition == node.condition && then_body == node.then_body && else_body == node.else_body) {
    return stmt;
  }
  if (!then_body && !else_body) return nullptr;
  if (!then_body) return If::Make(Not(condition), else_body);
  return If::Make(condition, then_body, else_body);
}

Stmt ScopedRewriter::Children(const Stmt& stmt) {
  if (const auto* node = As<If>(stmt)) return ChildrenOfIf(*node, stmt);
  if (const auto* seq = As<Seq>(stmt)) {
    std::vector<Stmt> out;
    bool changed = false;
    for (const Stmt& s : seq->stmts) {
      out.push_back(VisitStmt(s));
      changed |= out.back() != s;
    }
    if (!changed) return stmt;
    Stmt made = Seq::Make(std::move(out));
    const auto* left = As<Seq>(made);
    return left && left->stmts.empty() ? nullptr : made;
  }
  Enter(stmt);
  const auto* block = As<Block>(stmt);
  bool guarded = block && block->where && IsPure(block->where);
  size_t token = guarded ? analyzer_.Assume(block->where) : 0;
  Stmt out = Cast<StmtNode>(stmt->MapChildren(*this));
  if (guarded) analyzer_.Retract(token);
  return out;
}

NodeRef ScopedRewriter::MapChild(const NodeRef& child, FieldRole role) {
  if (child->kind == NodeKind::kBuffer) {
    return VisitBuffer(Cast<BufferNode>(child));
  }
  if (role == FieldRole::kBinds) return child;
  if (IsA<StmtNode>(child)) {
    Stmt out = VisitStmt(Cast<StmtNode>(child));
    return out ? out : Seq::Make({});
  }
  if (IsA<ExprNode>(child)) return VisitExpr(Cast<ExprNode>(child));
  if (child->kind == NodeKind::kRegion) return VisitRegion(Cast<RegionNode>(child));
  return child->MapChildren(*this);
}

}  // namespace tenon
