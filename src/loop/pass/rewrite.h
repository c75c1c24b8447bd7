// What passes use to walk and rebuild statements.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "arith/analyzer.h"
#include "ir/visit.h"
#include "loop/func.h"

namespace tenon {

/// The module with each function replaced by `map`'s answer (itself for no change; names stay).
Module MapFuncs(const Module& module, const std::function<Func(const Func&)>& map);

/// The function with another body; itself when it is the same.
Func WithBody(const Func& func, Stmt body);

/// True when a statement of the tree is what is looked for.
bool AnyStmt(const Stmt& root, const std::function<bool(const NodeRef&)>& what);

/// The loop around another body.
Stmt WithBody(const For& loop, Stmt body);

/// True for Seq, For, If, While, Let, Alloc and Bind: what only says when, how often and with which
/// names other statements run.
bool IsControl(const Stmt& stmt);
/// A control statement with each statement right below replaced by `map`'s answer, in the order in
/// which they run; null: nothing in its place. Other statements come back as they are.
Stmt MapBodies(const Stmt& stmt, const std::function<Stmt(const Stmt&)>& map);

/// Tells the analyzer the ranges and steps of the function's dims.
void BindDims(const PrimFunc& func, Analyzer* analyzer);

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

/// Names in use in a function, so that copies of statements get new ones.
class NameSupply {
 public:
  explicit NameSupply(const PrimFunc& func);
  /// `base` itself where it is free, else base.1, base.2, …; taken from now on.
  std::string Fresh(const std::string& base);

 private:
  std::unordered_set<std::string> used_;
  std::unordered_map<std::string, int> next_;
};

/// A copy of `stmt` with `vars` replaced and everything that it binds (variables, buffers, block
/// names) made anew.
Stmt FreshCopy(const Stmt& stmt, VarMap vars, NameSupply* names);

/// The number of statements, Seqs not counted.
int64_t CountStmts(const Stmt& stmt);

/// True when evaluating `e` any number of times, or never, makes no difference.
bool IsPure(const Expr& e);

/// Conjuncts of a condition, in order.
std::vector<Expr> SplitConjunction(const Expr& condition);
/// The conjunction of `conditions`; null when there are none.
Expr Conjunction(const std::vector<Expr>& conditions);

}  // namespace tenon
