// Which expressions may only be evaluated where their Select takes them: loads, which could be out
// of bounds, calls with effects, and index divisions, whose divisor could be 0.
#pragma once

#include <functional>
#include <unordered_map>

#include "ir/expr.h"

namespace tenon::codegen {

class Guards {
 public:
  /// `safe` says which loads can be evaluated anywhere; without it none can.
  explicit Guards(std::function<bool(const Load&)> safe = nullptr) : safe_(std::move(safe)) {}

  /// Answers are kept by node, as long as the nodes live: until Clear.
  bool Needs(const Expr& e);
  void Clear() { known_.clear(); }

 private:
  bool NeedsItself(const Expr& e) const;

  std::function<bool(const Load&)> safe_;
  std::unordered_map<const ExprNode*, bool> known_;
};

}  // namespace tenon::codegen
