// Walking and rebuilding statements, knowing what holds where they stand.
#pragma once

#include "arith/conditions.h"
#include "ir/visit.h"
#include "loop/edit.h"
#include "loop/facts.h"
#include "loop/fresh_names.h"

namespace tenon {

/// Rebuilds statements top-down, knowing at every place what holds there: ranges of loop variables,
/// values of pure lets, domains of block variables, conditions of the ifs around. Override what a
/// pass changes; a node in which nothing changes comes back as itself. Recurses as deep as
/// statements nest.
class ScopedRewriter : protected ChildMapper {
 public:
  Stmt Rewrite(const Stmt& stmt);

 protected:
  /// One statement; may answer null for "nothing left". Default: Children.
  virtual Stmt VisitStmt(const Stmt& stmt) { return Children(stmt); }
  /// A whole expression (not its parts).
  virtual Expr VisitExpr(const Expr& expr) { return expr; }
  virtual Buffer VisitBuffer(const Buffer& buffer) { return buffer; }
  virtual NodeRef VisitRegion(const Region& region) { return region->MapChildren(*this); }

  /// The statement with its expressions, buffers and statements rewritten, under what it makes
  /// known.
  Stmt Children(const Stmt& stmt);

  Analyzer analyzer_;

 private:
  NodeRef MapChild(const NodeRef& child, FieldRole role) final;
  Stmt ChildrenOfIf(const If& node, const Stmt& stmt);
  void Enter(const Stmt& stmt);
};

}  // namespace tenon
