// What differs between the iterations of a loop, and what tells them apart.
#pragma once

#include <unordered_set>
#include <vector>

#include "arith/analyzer.h"
#include "loop/func.h"

namespace tenon {

/// Variables and buffers that may hold something else in each iteration of a loop: its variable,
/// what is computed from it, and memory about which such values or such conditions decide. A buffer
/// counts as a whole.
class Variance {
 public:
  /// Of a loop over `var` around `body`. `module` says what callees write; null: all they are
  /// passed.
  Variance(const Var& var, const Stmt& body, const Module* module = nullptr);

  bool Has(const Node* var_or_buffer) const { return differing_.count(var_or_buffer) != 0; }
  /// True where one of them has a say in the expression, or in what the statement does.
  bool Differs(const NodeRef& node) const;
  /// True where one of them has a say in whether, or how often, the statement's parts run.
  bool TakesApart(const StmtNode& stmt) const;

 private:
  void Scan(const Stmt& stmt, bool apart);
  void ScanWritten(const Stmt& stmt);

  const Module* module_;
  std::unordered_set<const Node*> differing_;
};

/// The element's number in row-major order, simplified.
Expr FlatIndex(const BufferNode& buffer, const std::vector<Expr>& indices, Analyzer* analyzer);

/// The smallest c of which indices take v / c or v % c; 0 where they do neither.
int64_t SmallestPart(const std::vector<Expr>& indices, const Var& v);

/// An iteration of a loop from 0, by its variable.
struct Iteration {
  Var var;
  Expr extent;
};

/// True when equal elements of a buffer mean equal iterations: an index is shown from which the
/// number of the iteration, x for `a` and y for `b`, can be read off by division and remainder.
/// `analyzer` knows the variables' ranges.
bool ElementTells(const BufferNode& buffer, const std::vector<Expr>& a, const Iteration& x,
                  const std::vector<Expr>& b, const Iteration& y, Analyzer* analyzer);

}  // namespace tenon
