#include "arith/expr_ids.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "ir/buffer.h"

namespace tenon {

namespace {

uint64_t Tag(NodeKind kind, const DType& t, uint64_t op) {
  return static_cast<uint64_t>(kind) | op << 8 | static_cast<uint64_t>(t.code) << 16 |
         static_cast<uint64_t>(t.scalable) << 20 | static_cast<uint64_t>(t.bits) << 21 |
         static_cast<uint64_t>(static_cast<uint32_t>(t.lanes)) << 29 |
         static_cast<uint64_t>(t.float8) << 60;
}
uint64_t Tag(const ExprNode& e, uint64_t op = 0) { return Tag(e.kind, e.dtype, op); }
// Continues a node with more than two operands; no expression kind reaches it.
constexpr uint64_t kMore = 0xFF;

}  // namespace

ExprIds::Id ExprIds::Intern(uint64_t tag, uint64_t a, uint64_t b) {
  auto [id, added] = by_key_.Insert({tag, a, b});
  if (added) {
    known_.emplace_back();
    *id = static_cast<Id>(known_.size());
  }
  return *id;
}

ExprIds::Id ExprIds::Of(const Expr& e) {
  if (!e) return 0;
  if (const Id* id = by_node_.Find(e.get())) return *id;
  const Id id = Compute(e);
  *by_node_.Insert(e.get()).first = id;
  keep_.push_back(e);
  Known& known = known_[id - 1];
  if (!known.node) known.node = e.get();
  return id;
}

Expr ExprIds::Product(const Expr& lhs, const Expr& rhs) {
  const Id a = Of(lhs), b = Of(rhs);
  const uint64_t tag = Tag(NodeKind::kBinary, lhs->dtype, static_cast<uint64_t>(BinaryOp::kMul));
  if (const Id* id = by_key_.Find({tag, a, b})) {
    if (const ExprNode* node = known_[*id - 1].node) return Expr(node);
  }
  Expr product = Binary::Make(BinaryOp::kMul, lhs, rhs);
  Of(product);
  return product;
}

ExprIds::Factored& ExprIds::FactoredOf(const Expr& product) {
  const Id id = Of(product);
  if (Factored* known = known_[id - 1].factored) return *known;
  std::vector<Expr> factors;
  const Expr* e = &product;
  for (const auto* mul = As<Binary>(*e); mul && mul->op == BinaryOp::kMul; mul = As<Binary>(*e)) {
    factors.push_back(mul->rhs);
    e = &mul->lhs;
  }
  factors.push_back(*e);
  std::reverse(factors.begin(), factors.end());
  return *(known_[id - 1].factored = &factored_.emplace_back(Factored{std::move(factors), {}}));
}

const std::vector<Expr>& ExprIds::FactorsOf(const Expr& product) {
  return FactoredOf(product).factors;
}

const Expr& ExprIds::Without(const Expr& product, size_t k) {
  Factored& of = FactoredOf(product);
  of.without.resize(of.factors.size());
  if (!of.without[k]) {
    // The atoms are in order.
    Expr rest;
    for (size_t i = 0; i < of.factors.size(); ++i) {
      if (i != k) rest = rest ? Product(rest, of.factors[i]) : of.factors[i];
    }
    of.without[k] = rest;
  }
  return of.without[k];
}

void ExprIds::Clear() {
  by_node_.Clear();
  by_key_.Clear();
  known_.clear();
  factored_.clear();
  keep_.clear();
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

int Operator(const Expr& e) {
  if (const auto* n = As<Unary>(e)) return static_cast<int>(n->op);
  if (const auto* n = As<Binary>(e)) return static_cast<int>(n->op);
  if (const auto* n = As<Call>(e)) return static_cast<int>(n->intrinsic);
  return 0;
}

// Of two nodes of one kind.
int CompareOperands(const Expr& a, const Expr& b, int depth) {
  const auto first = [&](std::initializer_list<std::pair<const Expr*, const Expr*>> pairs) {
    for (const auto& [x, y] : pairs) {
      if (int c = Compare(*x, *y, depth)) return c;
    }
    return 0;
  };
  if (const auto* x = As<Binary>(a)) {
    const auto* y = As<Binary>(b);
    return first({{&x->lhs, &y->lhs}, {&x->rhs, &y->rhs}});
  }
  if (const auto* x = As<Unary>(a)) return Compare(x->value, As<Unary>(b)->value, depth);
  if (const auto* x = As<Select>(a)) {
    const auto* y = As<Select>(b);
    return first(
        {{&x->condition, &y->condition}, {&x->on_true, &y->on_true}, {&x->on_false, &y->on_false}});
  }
  if (const auto* x = As<CastExpr>(a)) return Compare(x->value, As<CastExpr>(b)->value, depth);
  if (const auto* x = As<Load>(a)) return CompareAll(x->indices, As<Load>(b)->indices, depth);
  if (const auto* x = As<Ramp>(a)) {
    const auto* y = As<Ramp>(b);
    return first({{&x->base, &y->base}, {&x->stride, &y->stride}});
  }
  if (const auto* x = As<Broadcast>(a)) return Compare(x->value, As<Broadcast>(b)->value, depth);
  if (const auto* x = As<Call>(a)) return CompareAll(x->args, As<Call>(b)->args, depth);
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
  return CompareOperands(a, b, depth - 1);
}

}  // namespace

int CompareExpr(const Expr& a, const Expr& b) { return Compare(a, b, kCompareDepth); }

}  // namespace tenon
