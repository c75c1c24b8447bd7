// Structural identity and a canonical order of expressions.
#pragma once

#include <unordered_map>
#include <vector>

#include "ir/expr.h"

namespace tenon {

/// Numbers expressions so that structurally equal ones (same variables and buffers) have the same
/// number. Shared nodes are looked at once, so DAGs cost what their nodes cost. Nodes seen are kept
/// alive.
class ExprIds {
 public:
  using Id = uint32_t;
  Id Of(const Expr& e);
  bool Same(const Expr& a, const Expr& b) {
    if (a == b) return true;
    if (!a || !b || a->kind != b->kind || a->kind == NodeKind::kVar) return false;
    return Of(a) == Of(b);
  }
  size_t size() const { return keep_.size(); }

 private:
  struct Key {
    uint64_t tag, a, b;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    size_t operator()(const Key& k) const {
      uint64_t h = k.tag * 0x9E3779B97F4A7C15ull;
      h = (h ^ (h >> 29) ^ k.a) * 0xBF58476D1CE4E5B9ull;
      h = (h ^ (h >> 31) ^ k.b) * 0x94D049BB133111EBull;
      return h ^ (h >> 30);
    }
  };
  Id Intern(uint64_t tag, uint64_t a, uint64_t b);
  Id Compute(const Expr& e);

  std::unordered_map<const ExprNode*, Id> by_node_;
  std::unordered_map<Key, Id, KeyHash> by_key_;
  std::vector<Expr> keep_;
};

/// Negative, zero or positive as a stands before, with or after b: by kind, operator, operands;
/// variables by name. Zero also for different variables of one name, and beyond a fixed depth:
/// callers sort stably.
int CompareExpr(const Expr& a, const Expr& b);

}  // namespace tenon
