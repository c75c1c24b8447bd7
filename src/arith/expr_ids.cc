#include "arith/expr_ids.h"

#include <bit>
#include <cstring>

#include "ir/buffer.h"

namespace tenon {

namespace {

uint64_t Tag(const ExprNode& e, uint64_t op = 0) {
  const DType& t = e.dtype;
  return static_cast<uint64_t>(e.kind) | op << 8 | static_cast<uint64_t>(t.code) << 16 |
         static_cast<uint64_t>(t.scalable) << 20 | static_cast<uint64_t>(t.bits) << 21 |
         static_cast<uint64_t>(static_cast<uint32_t>(t.lanes)) << 29 |
         static_cast<uint64_t>(t.float8) << 60;
}
// Continues a node with more than two operands; no expression kind reaches it.
constexpr uint64_t kMore = 0xFF;

}  // namespace

ExprIds::Id ExprIds::Intern(uint64_t tag, uint64_t a, uint64_t b) {
  return by_key_.try_emplace(Key{tag, a, b}, static_cast<Id>(by_key_.size() + 1)).first->second;
}

ExprIds::Id ExprIds::Of(const Expr& e) {
  if (!e) return 0;
  if (auto it = by_node_.find(e.get()); it != by_node_.end()) return it->second;
  Id id = Compute(e);
  by_node_.emplace(e.get(), id);
  keep_.push_back(e);
  return id;
}

ExprIds::Id ExprIds::Compute(const Expr& e) {
  auto fold = [&](Id first, const std::vector<Expr>& rest) {
    for (const Expr& x : rest) first = Intern(kMore, first, Of(x));
    return first;
  };
  if (const auto* n = As<IntConst>(e)) return Intern(Tag(*n), static_cast<uint64_t>(n->value), 0);
  if (const auto* n = As<FloatConst>(e))
    return Intern(Tag(*n), std::bit_cast<uint64_t>(n->value), 0);
  if (const auto* n = As<Unary>(e))
    return Intern(Tag(*n, static_cast<uint64_t>(n->op)), Of(n->value), 0);
  if (const auto* n = As<Binary>(e)) {
    return Intern(Tag(*n, static_cast<uint64_t>(n->op)), Of(n->lhs), Of(n->rhs));
  }
  if (const auto* n = As<Select>(e)) {
    return fold(Intern(Tag(*n), Of(n->condition), 0), {n->on_true, n->on_false});
  }
  if (const auto* n = As<CastExpr>(e)) return Intern(Tag(*n), Of(n->value), 0);
  if (const auto* n = As<Load>(e)) {
    return fold(Intern(Tag(*n), reinterpret_cast<uintptr_t>(n->buffer.get()), Of(n->mask)),
                n->indices);
  }
  if (const auto* n = As<Ramp>(e)) return Intern(Tag(*n), Of(n->base), Of(n->stride));
  if (const auto* n = As<Broadcast>(e)) return Intern(Tag(*n), Of(n->value), 0);
  if (const auto* n = As<Call>(e)) {
    return fold(Intern(Tag(*n, static_cast<uint64_t>(n->intrinsic)), n->args.size(), 0), n->args);
  }
  return Intern(Tag(*e), reinterpret_cast<uintptr_t>(e.get()),
                1);  // variables, strings: the node is the identity
}

namespace {

constexpr int kCompareDepth = 12;

template <class T>
int Order(const T& a, const T& b) {
  return a < b ? -1 : (b < a ? 1 : 0);
}

int Compare(const Expr& a, const Expr& b, int depth);

int CompareAll(const std::vector<Expr>& a, const std::vector<Expr>& b, int depth) {
  if (int c = Order(a.size(), b.size())) return c;
  for (size_t i = 0; i < a.size(); ++i) {
    if (int c = Compare(a[i], b[i], depth)) return c;
  }
  return 0;
}

std::vector<Expr> Operands(const Expr& e) {
  if (const auto* n = As<Unary>(e)) return {n->value};
  if (const auto* n = As<Binary>(e)) return {n->lhs, n->rhs};
  if (const auto* n = As<Select>(e)) return {n->condition, n->on_true, n->on_false};
  if (const auto* n = As<CastExpr>(e)) return {n->value};
  if (const auto* n = As<Load>(e)) return n->indices;
  if (const auto* n = As<Ramp>(e)) return {n->base, n->stride};
  if (const auto* n = As<Broadcast>(e)) return {n->value};
  if (const auto* n = As<Call>(e)) return n->args;
  return {};
}

int Operator(const Expr& e) {
  if (const auto* n = As<Unary>(e)) return static_cast<int>(n->op);
  if (const auto* n = As<Binary>(e)) return static_cast<int>(n->op);
  if (const auto* n = As<Call>(e)) return static_cast<int>(n->intrinsic);
  return 0;
}

int Compare(const Expr& a, const Expr& b, int depth) {
  if (a == b || depth == 0) return 0;
  if (int c = Order(a->kind, b->kind)) return c;
  if (const auto* x = As<IntConst>(a)) return Order(x->value, As<IntConst>(b)->value);
  if (const auto* x = As<FloatConst>(a)) {
    return Order(std::bit_cast<int64_t>(x->value),
                 std::bit_cast<int64_t>(As<FloatConst>(b)->value));
  }
  if (const auto* x = As<StringConst>(a)) return Order(x->value, As<StringConst>(b)->value);
  if (const auto* x = As<VarNode>(a)) return Order(x->name, As<VarNode>(b)->name);
  if (int c = Order(Operator(a), Operator(b))) return c;
  if (const auto* x = As<Load>(a)) {
    if (int c = Order(x->buffer->name, As<Load>(b)->buffer->name)) return c;
  }
  return CompareAll(Operands(a), Operands(b), depth - 1);
}

}  // namespace

int CompareExpr(const Expr& a, const Expr& b) { return Compare(a, b, kCompareDepth); }

}  // namespace tenon
