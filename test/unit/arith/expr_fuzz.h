// Random index expressions and a tiny evaluator of them, for the fuzz tests of this folder. The
// evaluator shares no code with what it checks.
#pragma once

#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "ir/expr.h"

namespace tenon::fuzz {

/// Values of variables; nullopt results are undefined (division by zero).
using Assignment = std::map<const VarNode*, int64_t>;

// Exact for the small values at hand.
inline int64_t Floor(int64_t a, int64_t b) {
  return static_cast<int64_t>(std::floor(static_cast<double>(a) / static_cast<double>(b)));
}

/// One lane of an index or bool expression.
inline std::optional<int64_t> Evaluate(const Expr& e, const Assignment& env, int lane = 0) {
  if (const auto* n = As<IntConst>(e)) return n->value;
  if (const auto* n = As<VarNode>(e)) return env.at(n);
  if (const auto* n = As<Broadcast>(e)) return Evaluate(n->value, env);
  if (const auto* n = As<Ramp>(e)) {
    auto b = Evaluate(n->base, env), s = Evaluate(n->stride, env);
    if (!b || !s) return std::nullopt;
    return *b + *s * lane;
  }
  if (const auto* n = As<Unary>(e)) {
    auto v = Evaluate(n->value, env, lane);
    if (!v) return v;
    return n->op == UnaryOp::kNot ? int64_t{*v == 0} : -*v;
  }
  if (const auto* n = As<Select>(e)) {
    auto c = Evaluate(n->condition, env, lane);
    if (!c) return c;
    return Evaluate(*c ? n->on_true : n->on_false, env, lane);
  }
  const auto* n = As<Binary>(e);
  auto x = Evaluate(n->lhs, env, lane), y = Evaluate(n->rhs, env, lane);
  if (!x || !y) return std::nullopt;
  int64_t a = *x, b = *y;
  switch (n->op) {
    case BinaryOp::kAdd: return a + b;
    case BinaryOp::kSub: return a - b;
    case BinaryOp::kMul: return a * b;
    case BinaryOp::kDiv: return b == 0 ? std::nullopt : std::optional(Floor(a, b));
    case BinaryOp::kMod: return b == 0 ? std::nullopt : std::optional(a - Floor(a, b) * b);
    case BinaryOp::kMin: return std::min(a, b);
    case BinaryOp::kMax: return std::max(a, b);
    case BinaryOp::kEq: return a == b;
    case BinaryOp::kNe: return a != b;
    case BinaryOp::kLt: return a < b;
    case BinaryOp::kLe: return a <= b;
    case BinaryOp::kGt: return a > b;
    case BinaryOp::kGe: return a >= b;
    case BinaryOp::kAnd: return a && b;
    case BinaryOp::kOr: return a || b;
    default: return std::nullopt;
  }
}

class Generator {
 public:
  Generator(uint32_t seed, std::vector<Var> vars) : random_(seed), vars_(std::move(vars)) {}

  int Below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }

  Expr Index(int depth, int lanes = 1) {
    if (depth == 0 || Below(8) == 0) return Leaf(lanes);
    auto sub = [&] { return Index(depth - 1, lanes); };
    switch (Below(lanes == 1 ? 12 : 10)) {
      case 0:
      case 1:
      case 2: return Binary::Make(BinaryOp::kAdd, sub(), sub());
      case 3: return Binary::Make(BinaryOp::kSub, sub(), sub());
      case 4: return Binary::Make(BinaryOp::kMul, sub(), Constant(lanes, Below(9) - 2));
      case 5: return Binary::Make(BinaryOp::kMul, sub(), Below(3) ? Leaf(lanes) : sub());
      case 6: return Binary::Make(BinaryOp::kDiv, sub(), Divisor(lanes));
      case 7: return Binary::Make(BinaryOp::kMod, sub(), Divisor(lanes));
      case 8: return Binary::Make(Below(2) ? BinaryOp::kMin : BinaryOp::kMax, sub(), sub());
      case 9:
        return Binary::Make(Below(2) ? BinaryOp::kDiv : BinaryOp::kMod, sub(),
                            Constant(lanes, 1 << Below(5)));
      case 10: return Select::Make(Bool(depth - 1), sub(), sub());
      default: return Unary::Make(UnaryOp::kNeg, sub());
    }
  }

  Expr Bool(int depth, int lanes = 1) {
    static constexpr BinaryOp kCompare[] = {BinaryOp::kEq, BinaryOp::kNe, BinaryOp::kLt,
                                            BinaryOp::kLe, BinaryOp::kGt, BinaryOp::kGe};
    if (depth > 1 && Below(3) == 0) {
      Expr a = Bool(depth - 1, lanes), b = Bool(depth - 1, lanes);
      if (Below(5) == 0) return Unary::Make(UnaryOp::kNot, a);
      return Binary::Make(Below(2) ? BinaryOp::kAnd : BinaryOp::kOr, a, b);
    }
    int d = depth > 0 ? depth - 1 : 0;
    return Binary::Make(kCompare[Below(6)], Index(d, lanes), Index(d, lanes));
  }

  Expr Constant(int lanes, int64_t value) {
    Expr c = IndexConst(value);
    return lanes == 1 ? c : Broadcast::Make(c, lanes);
  }

 private:
  Expr Leaf(int lanes) {
    if (lanes > 1 && Below(2)) return Ramp::Make(Leaf(1), IndexConst(Below(5) - 1), lanes);
    Expr e = Below(4) == 0
                 ? IndexConst(Below(20) - 8)
                 : Expr(vars_[static_cast<size_t>(Below(static_cast<int>(vars_.size())))]);
    if (Below(3) == 0) e = Binary::Make(BinaryOp::kMul, e, IndexConst(1 << Below(5)));
    return lanes == 1 ? e : Broadcast::Make(e, lanes);
  }
  Expr Divisor(int lanes) {
    if (Below(4) == 0) return Leaf(lanes);
    static constexpr int kDivisors[] = {1, 2, 3, 4, 5, 6, 8, 12, 16, -3};
    return Constant(lanes, kDivisors[Below(10)]);
  }

  std::mt19937 random_;
  std::vector<Var> vars_;
};

}  // namespace tenon::fuzz
