// Structural identity and a canonical order of expressions.
#pragma once

#include <deque>
#include <vector>

#include "ir/expr.h"
#include "support/flat_map.h"

namespace tenon {

/// Numbers expressions so that structurally equal ones (same variables and buffers) have the same
/// number. Shared nodes are looked at once, so DAGs cost what their nodes cost. Nodes seen are kept
/// alive.
class ExprIds {
 public:
  using Id = uint32_t;
  /// From 1; 0 is nobody's.
  Id Of(const Expr& e);
  bool Same(const Expr& a, const Expr& b) {
    if (a == b) return true;
    if (!a || !b || a->kind != b->kind || a->kind == NodeKind::kVar) return false;
    return Of(a) == Of(b);
  }
  /// lhs * rhs: the node of before where there is an equal one.
  Expr Product(const Expr& lhs, const Expr& rhs);
  /// The atoms of a product (linear.h). They last as long as the numbers.
  const std::vector<Expr>& FactorsOf(const Expr& product);
  /// The product of all its atoms but the k-th, of at least two.
  const Expr& Without(const Expr& product, size_t k);
  /// Nodes kept alive.
  size_t size() const { return keep_.size(); }
  /// Forgets all; numbers begin again.
  void Clear();

 private:
  struct Key {
    uint64_t tag, a, b;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    uint64_t operator()(const Key& k) const {
      return SpreadBits(SpreadBits(k.tag * 0x9E3779B97F4A7C15ull ^ k.a) ^ k.b);
    }
  };
  // A product's atoms, and what is left without each, where somebody asked.
  struct Factored {
    std::vector<Expr> factors, without;
  };
  // What has a number: the first such node (null: a part of one).
  struct Known {
    const ExprNode* node = nullptr;
    Factored* factored = nullptr;
  };
  Factored& FactoredOf(const Expr& product);
  Id Intern(uint64_t tag, uint64_t a, uint64_t b);
  Id Compute(const Expr& e);

  FlatMap<const ExprNode*, Id, PointerHash> by_node_;
  FlatMap<Key, Id, KeyHash> by_key_;
  std::vector<Known> known_;  // by number - 1
  std::deque<Factored> factored_;
  std::vector<Expr> keep_;
};

/// Negative, zero or positive as a stands before, with or after b: by kind, operator, operands;
/// variables by name. Zero also for different variables of one name, and beyond a fixed depth:
/// callers sort stably.
int CompareExpr(const Expr& a, const Expr& b);

}  // namespace tenon
