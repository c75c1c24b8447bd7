// What differs between the iterations of a loop.
#pragma once

#include <unordered_set>

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

}  // namespace tenon
