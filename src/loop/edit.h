// Statements, functions and modules with some of their parts replaced.
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "loop/func.h"

namespace tenon {

/// The module with each function replaced by `map`'s answer (itself for no change; names stay).
Module MapFuncs(const Module& module, const std::function<Func(const Func&)>& map);
/// The function with another body (null: an empty one); itself when it is the same.
Func WithBody(const Func& func, Stmt body);
/// The loop around another body.
Stmt WithBody(const For& loop, Stmt body);

// ---- looking ----

/// True when a statement of the tree is what is looked for.
bool AnyStmt(const Stmt& root, const std::function<bool(const NodeRef&)>& what);
/// The number of statements, Seqs not counted.
int64_t CountStmts(const Stmt& stmt);
/// The statements right below a statement, in the order in which they run.
std::vector<Stmt> ChildrenOf(const Stmt& stmt);
/// True for Seq, For, If, While, Let, Alloc and Bind: what only says when, how often and with which
/// names other statements run.
bool IsControl(const Stmt& stmt);

// ---- replacing ----

/// A control statement with each statement right below replaced by `map`'s answer, in the order in
/// which they run; null: nothing in its place. Other statements come back as they are.
Stmt MapBodies(const Stmt& stmt, const std::function<Stmt(const Stmt&)>& map);
/// A statement of any kind with those right below replaced; null removes one, and with it every
/// loop, condition and allocation left empty. Null when nothing is left.
Stmt MapChildStmts(const Stmt& stmt, const std::function<Stmt(const Stmt&)>& map);
/// Rebuilds every statement below and including `root`, children first; null removes it.
Stmt MapStmts(const Stmt& root, const std::function<Stmt(const Stmt&)>& map);

using Replacements = std::unordered_map<const Node*, Stmt>;
/// Rebuilds `root` with statements (by identity) replaced; null removes one, as MapChildStmts does.
Stmt Edit(const Stmt& root, const Replacements& replacements);

Stmt Before(const Stmt& first, const Stmt& second);
/// `root` with the allocation put around everything / taken away.
Stmt AddAlloc(const Buffer& buffer, const Stmt& root);
Stmt RemoveAlloc(const Buffer& buffer, const Stmt& root);
/// `condition` added to what guards the blocks under `stmt`; stray statements get an If.
Stmt AddGuard(const Stmt& stmt, const Expr& condition);

}  // namespace tenon
