#include "arith/conditions.h"

#include "ir/visit.h"

namespace tenon {

bool IsPure(const Expr& e) {
  bool pure = true;
  PreOrder(e, [&](const NodeRef& n) {
    if (n->kind == NodeKind::kLoad) pure = false;
    if (const auto* call = As<Call>(n)) pure &= Info(call->intrinsic).purity == Purity::kPure;
    return pure;
  });
  return pure;
}

std::vector<Expr> Conjuncts(const Expr& condition) {
  std::vector<Expr> out, todo;
  if (condition) todo.push_back(condition);
  while (!todo.empty()) {
    Expr e = todo.back();
    todo.pop_back();
    const auto* both = As<Binary>(e);
    if (both && both->op == BinaryOp::kAnd) {
      todo.push_back(both->rhs);
      todo.push_back(both->lhs);
    } else {
      out.push_back(std::move(e));
    }
  }
  return out;
}

Expr AndAlso(const Expr& a, const Expr& b) {
  if (!a) return b;
  return b ? And(a, b) : a;
}

Expr Conjunction(const std::vector<Expr>& conditions) {
  Expr out;
  for (const Expr& c : conditions) out = AndAlso(out, c);
  return out;
}

}  // namespace tenon
