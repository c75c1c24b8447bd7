// And, Or, Not.
#include <algorithm>

#include "arith/analyzer_impl.h"
#include "arith/int_math.h"
#include "arith/interval.h"

namespace tenon {

namespace {

BinaryOp Opposite(BinaryOp op) {
  switch (op) {
    case BinaryOp::kEq: return BinaryOp::kNe;
    case BinaryOp::kNe: return BinaryOp::kEq;
    case BinaryOp::kLt: return BinaryOp::kGe;
    case BinaryOp::kLe: return BinaryOp::kGt;
    case BinaryOp::kGt: return BinaryOp::kLe;
    case BinaryOp::kGe: return BinaryOp::kLt;
    default: return op;  // NOLINT: not a comparison
  }
}

void Flatten(BinaryOp op, const Expr& e, std::vector<Expr>* out) {
  const auto* n = As<Binary>(e);
  if (n && n->op == op) {
    Flatten(op, n->lhs, out);
    Flatten(op, n->rhs, out);
  } else {
    out->push_back(e);
  }
}

}  // namespace

Expr Analyzer::Impl::SimplifyNot(const Expr& value) {
  if (Expr folded = FoldUnary(UnaryOp::kNot, value)) return folded;
  if (const auto* inner = As<Unary>(value); inner && inner->op == UnaryOp::kNot)
    return inner->value;
  const auto* n = As<Binary>(value);
  // An ordered comparison of floats is false with NaN, and so is its opposite: only equality may be
  // turned round.
  bool reversible = n && Info(n->op).is_comparison &&
                    (!n->lhs->dtype.IsFloat() || n->op == BinaryOp::kEq || n->op == BinaryOp::kNe);
  if (reversible) return Simplify(Binary::Make(Opposite(n->op), n->lhs, n->rhs));
  return Unary::Make(UnaryOp::kNot, value);
}

// The values of `difference`, of which the comparison with zero says something.
static std::optional<SumRange> RangeOf(BinaryOp op, Linear difference) {
  auto at = CheckedSub(0, difference.constant);
  auto below = at ? CheckedSub(*at, 1) : std::nullopt;
  auto above = at ? CheckedAdd(*at, 1) : std::nullopt;
  if (!below || !above || difference.IsConstant()) return std::nullopt;
  difference.constant = 0;
  SumRange out{std::move(difference), Point(*at)};
  switch (op) {
    case BinaryOp::kEq: return out;
    case BinaryOp::kNe: out.excluded = true; return out;
    case BinaryOp::kLt: out.range = {Interval::kNegInf, *below}; return out;
    case BinaryOp::kLe: out.range = {Interval::kNegInf, *at}; return out;
    case BinaryOp::kGt: out.range = {*above, Interval::kPosInf}; return out;
    case BinaryOp::kGe: out.range = {*at, Interval::kPosInf}; return out;
    default: return std::nullopt;  // NOLINT: not a comparison
  }
}

// Differences of data wrap: there, only a comparison with a constant says something of a sum.
std::optional<SumRange> Analyzer::Impl::AsRange(const Expr& condition) {
  const auto* n = As<Binary>(condition);
  if (!n || !Info(n->op).is_comparison || !n->lhs->dtype.IsScalar()) return std::nullopt;
  const DType type = n->lhs->dtype;
  if (type.IsIndex()) {
    auto difference = Difference(n->lhs, n->rhs);
    return difference ? RangeOf(n->op, std::move(*difference)) : std::nullopt;
  }
  auto bound = AsInt(n->rhs);
  auto constant = bound ? CheckedSub(0, *bound) : std::nullopt;
  if (!type.IsInt() || type == DType::UInt(64) || !constant || AsInt(n->lhs)) return std::nullopt;
  Linear sum = AtomSum(n->lhs);
  sum.constant = *constant;
  return RangeOf(n->op, std::move(sum));
}

// True only if a implies b.
bool Analyzer::Impl::Implies(const Expr& a, const Expr& b) {
  if (ids.Same(a, b)) return true;
  auto x = AsRange(a), y = AsRange(b);
  if (!x || !y || x->excluded) return false;
  for (const int64_t sign : {1, -1}) {
    auto step = AddScaled(ids, y->sum, x->sum, -sign);  // y = step + sign * x
    if (!step) continue;
    if (sign < 0 && step->terms.size() == x->sum.terms.size() + y->sum.terms.size()) continue;
    const Interval limit = Add(Bounds(*step), sign > 0 ? x->range : Neg(x->range));
    const bool apart = limit.max < y->range.min || limit.min > y->range.max;
    if (y->excluded ? apart : Contains(y->range, limit)) return true;
  }
  return false;
}

Expr Analyzer::Impl::SimplifyLogic(BinaryOp op, const Expr& lhs, const Expr& rhs) {
  constexpr size_t kMaxOperands = 16;
  const bool is_and = op == BinaryOp::kAnd;
  for (const auto& [a, b] : {std::pair{lhs, rhs}, std::pair{rhs, lhs}}) {
    if (auto v = AsInt(a)) return (*v != 0) == is_and ? b : a;
  }
  Expr same = Binary::Make(op, lhs, rhs);
  std::vector<Expr> operands, kept;
  Flatten(op, same, &operands);
  if (operands.size() > kMaxOperands) return same;
  // In a conjunction what another implies is redundant; in a disjunction, what implies another.
  auto covers = [&](const Expr& a, const Expr& b) {
    return is_and ? Implies(a, b) : Implies(b, a);
  };
  for (const Expr& e : operands) {
    if (std::any_of(kept.begin(), kept.end(), [&](const Expr& k) { return covers(k, e); }))
      continue;
    std::erase_if(kept, [&](const Expr& k) { return covers(e, k); });
    kept.push_back(e);
  }
  for (size_t i = 0; i < kept.size(); ++i) {
    Expr opposite = SimplifyNot(kept[i]);
    for (size_t j = 0; j < kept.size(); ++j) {
      if (i == j) continue;
      // a && b with b ⇒ !a is false; a || b with !a ⇒ b is true.
      bool decided = is_and ? Implies(kept[j], opposite) : Implies(opposite, kept[j]);
      if (decided) return MakeIntConst(same->dtype, !is_and);
    }
  }
  if (kept.size() == operands.size()) return same;
  Expr out = kept[0];
  for (size_t i = 1; i < kept.size(); ++i) out = Binary::Make(op, out, kept[i]);
  return out;
}

}  // namespace tenon
