// Comparisons, minima and maxima.
//
// An index comparison is brought to sum <= bound (or sum == bound) with coprime coefficients,
// decided where possible, and written back with the positive terms on the left: `i * 4 - j < m +
// 1`, or `2 <= i` where only negative ones exist.
#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "arith/analyzer_impl.h"
#include "arith/int_math.h"
#include "arith/interval.h"

namespace tenon {

namespace {

struct Sides {
  Linear left, right;  // sum = left - right
};

Sides SplitSigns(const Linear& sum) {
  Sides out;
  for (const Term& t : sum.terms) {
    if (t.coefficient > 0) {
      out.left.terms.push_back(t);
    } else {
      out.right.terms.push_back({t.product, -t.coefficient});
    }
  }
  return out;
}

// Divides coefficients by their gcd g, leaving the constant alone; false when there is nothing to
// divide by.
bool DivideTerms(Linear* sum, int64_t* g) {
  *g = CoefficientGcd(*sum);
  for (const Term& t : sum->terms) {
    if (t.coefficient == std::numeric_limits<int64_t>::min()) return false;
  }
  if (*g <= 0) return false;
  for (Term& t : sum->terms) t.coefficient /= *g;
  return true;
}

}  // namespace

// sum <= bound, where sum has no constant. Unwraps quotients: x / d <= k is x <= d k + d - 1.
Expr Analyzer::Impl::AtMost(Linear sum, int64_t bound) {
  int64_t g = 1;
  if (!DivideTerms(&sum, &g)) return nullptr;
  bound = FloorDivInt(bound, g);
  auto slack = AddScaled(ids, sum, ConstantSum(bound), -1);  // sum - bound <= 0: true
  auto excess = Scale(sum, -1);
  if (excess && bound != Interval::kPosInf)
    excess = AddScaled(ids, *excess, ConstantSum(bound + 1), 1);
  if (!slack || !excess) return nullptr;
  if (ProveNonPositive(*slack)) return BoolConst(true);
  if (ProveNonPositive(*excess)) return BoolConst(false);
  if (Expr out = AtMostQuotient(sum, bound)) return out;
  Sides sides = SplitSigns(sum);
  auto limit = CheckedAdd(bound, 1);
  if (!limit || bound == Interval::kNegInf) return nullptr;
  if (sides.left.terms.empty()) {
    return Binary::Make(BinaryOp::kLe, IndexConst(-bound), ToExpr(sides.right));
  }
  sides.right.constant = *limit;
  return Binary::Make(BinaryOp::kLt, ToExpr(sides.left), ToExpr(sides.right));
}

Expr Analyzer::Impl::AtMostQuotient(const Linear& sum, int64_t bound) {
  if (sum.terms.size() != 1) return nullptr;
  const auto* div = As<Binary>(sum.terms[0].product);
  auto d = div && div->op == BinaryOp::kDiv ? AsInt(div->rhs) : std::nullopt;
  if (!d || *d <= 0) return nullptr;
  Linear x = LinearOf(div->lhs);
  // x / d <= k: x <= d k + d - 1.   -(x / d) <= k: -x <= d k.
  bool positive = sum.terms[0].coefficient > 0;
  auto limit = CheckedMul(bound, *d);
  if (limit && positive) limit = CheckedAdd(*limit, *d - 1);
  auto signed_x = Scale(x, positive ? 1 : -1);
  auto rest = limit && signed_x ? CheckedSub(*limit, signed_x->constant) : std::nullopt;
  if (!rest || signed_x->IsConstant()) return nullptr;
  signed_x->constant = 0;
  return AtMost(std::move(*signed_x), *rest);
}

Expr Analyzer::Impl::EqualTo(Linear sum, int64_t value, bool equal) {
  int64_t g = 1;
  if (!DivideTerms(&sum, &g)) return nullptr;
  if (value % g != 0) return BoolConst(!equal);
  value /= g;
  auto difference = AddScaled(ids, sum, ConstantSum(value), -1);
  if (!difference || value == Interval::kNegInf) return nullptr;
  Interval range = Bounds(*difference);
  if (range == Point(0)) return BoolConst(equal);
  ModularSet set = ModularOf(*difference);
  bool excluded = range.min > 0 || range.max < 0;
  excluded |= set.coefficient == 0 ? set.base != 0 : set.base % set.coefficient != 0;
  auto above = AddScaled(ids, *difference, ConstantSum(1), 1);
  auto negated = Scale(*difference, -1);
  auto below = negated ? AddScaled(ids, *negated, ConstantSum(1), 1) : std::nullopt;
  excluded = excluded || (above && ProveNonPositive(*above)) || (below && ProveNonPositive(*below));
  if (excluded) return BoolConst(!equal);
  if (negated && ProveNonPositive(*difference) && ProveNonPositive(*negated))
    return BoolConst(equal);
  Sides sides = SplitSigns(sum);
  // The sign is free: variables go left, the earlier side first where both have some.
  bool swap = sides.left.terms.empty();
  if (!swap && !sides.right.terms.empty()) {
    swap = CompareExpr(ToExpr(sides.right), ToExpr(sides.left)) < 0;
  }
  if (swap) {
    std::swap(sides.left, sides.right);
    value = -value;
  }
  sides.right.constant = value;
  return Binary::Make(equal ? BinaryOp::kEq : BinaryOp::kNe, ToExpr(sides.left),
                      ToExpr(sides.right));
}

Expr Analyzer::Impl::CompareSums(BinaryOp op, const Linear& difference) {
  Linear sum = difference;
  sum.constant = 0;
  auto negated = Scale(sum, -1);
  int64_t c = difference.constant;
  if (!negated || c == Interval::kNegInf || c == Interval::kPosInf) return nullptr;
  if (sum.IsConstant()) return FoldBinary(op, IndexConst(c), IndexConst(0));
  switch (op) {
    case BinaryOp::kLe: return AtMost(sum, -c);
    case BinaryOp::kLt: return AtMost(sum, -c - 1);
    case BinaryOp::kGe: return AtMost(*negated, c);
    case BinaryOp::kGt: return AtMost(*negated, c - 1);
    case BinaryOp::kEq: return EqualTo(sum, -c, true);
    case BinaryOp::kNe: return EqualTo(sum, -c, false);
    default: return nullptr;  // NOLINT: not a comparison
  }
}

// Bounds of u64 are of the bits as int64: they order values only where none has the top bit.
static bool OrderIsSigned(DType type, Interval a, Interval b) {
  return type.Element() != DType::UInt(64) || (a.min >= 0 && b.min >= 0);
}

// By the ranges of the two sides, in any integer type (vectors: all lanes agree).
static std::optional<bool> DecideByRange(BinaryOp op, Interval a, Interval b) {
  switch (op) {
    case BinaryOp::kLt:
      if (a.max < b.min) return true;
      if (a.min >= b.max) return false;
      return std::nullopt;
    case BinaryOp::kLe:
      if (a.max <= b.min) return true;
      if (a.min > b.max) return false;
      return std::nullopt;
    case BinaryOp::kGt: return DecideByRange(BinaryOp::kLt, b, a);
    case BinaryOp::kGe: return DecideByRange(BinaryOp::kLe, b, a);
    case BinaryOp::kEq:
      if (a.IsPoint() && a == b) return true;
      if (a.max < b.min || b.max < a.min) return false;
      return std::nullopt;
    case BinaryOp::kNe:
      if (auto equal = DecideByRange(BinaryOp::kEq, a, b)) return !*equal;
      return std::nullopt;
    default: return std::nullopt;  // NOLINT: not a comparison
  }
}

Expr Analyzer::Impl::SimplifyComparison(BinaryOp op, const Expr& lhs, const Expr& rhs) {
  Expr same = Binary::Make(op, lhs, rhs);
  if (lhs->dtype.IsFloat() || lhs->dtype.IsHandle()) return same;
  if (ids.Same(lhs, rhs)) {
    return MakeIntConst(same->dtype,
                        op == BinaryOp::kEq || op == BinaryOp::kLe || op == BinaryOp::kGe);
  }
  Interval a = Bounds(lhs), b = Bounds(rhs);
  if (OrderIsSigned(lhs->dtype, a, b)) {
    if (auto known = DecideByRange(op, a, b)) return MakeIntConst(same->dtype, *known);
  }
  if (!lhs->dtype.IsIndex()) return same;
  if (lhs->dtype.IsScalar()) {
    auto difference = Difference(lhs, rhs);
    if (difference) Recombine(&*difference);
    Expr out = difference ? CompareSums(op, *difference) : nullptr;
    return out ? out : same;
  }
  Expr difference = Simplify(Binary::Make(BinaryOp::kSub, lhs, rhs));
  if (auto known = DecideByRange(op, Bounds(difference), {0, 0}))
    return MakeIntConst(same->dtype, *known);
  return same;
}

// Operands of a flattened chain of one operator.
static void Flatten(BinaryOp op, const Expr& e, std::vector<Expr>* out) {
  const auto* n = As<Binary>(e);
  if (n && n->op == op) {
    Flatten(op, n->lhs, out);
    Flatten(op, n->rhs, out);
  } else {
    out->push_back(e);
  }
}

bool Analyzer::Impl::Dominates(BinaryOp op, const Expr& a, const Expr& b) {
  if (ids.Same(a, b)) return true;
  if (a->dtype.IsFloat()) return false;
  Interval x = Bounds(a), y = Bounds(b);
  if (!OrderIsSigned(a->dtype, x, y)) return false;
  if (op == BinaryOp::kMin ? x.max <= y.min : x.min >= y.max) return true;
  if (!a->dtype.IsIndex()) return false;
  if (a->dtype.IsScalar()) return op == BinaryOp::kMin ? ProveLe(a, b) : ProveLe(b, a);
  Interval difference = Bounds(Simplify(Binary::Make(BinaryOp::kSub, a, b)));
  return op == BinaryOp::kMin ? difference.max <= 0 : difference.min >= 0;
}

Expr Analyzer::Impl::SimplifyMinMax(BinaryOp op, const Expr& lhs, const Expr& rhs) {
  constexpr size_t kMaxOperands = 8;
  Expr same = Binary::Make(op, lhs, rhs);
  if (lhs->dtype.IsFloat()) return ids.Same(lhs, rhs) ? lhs : same;
  std::vector<Expr> operands, kept;
  Flatten(op, same, &operands);
  if (operands.size() > kMaxOperands) {
    // The same twice is once, however many there are; what dominates what is asked of few.
    const size_t all = operands.size();
    std::unordered_set<ExprIds::Id> seen;
    std::erase_if(operands, [&](const Expr& e) { return !seen.insert(ids.Of(e)).second; });
    if (operands.size() > kMaxOperands) {
      if (operands.size() == all) return same;
      return std::accumulate(
          operands.begin() + 1, operands.end(), operands[0],
          [&](const Expr& sofar, const Expr& e) { return Binary::Make(op, sofar, e); });
    }
  }
  for (const Expr& e : operands) {
    if (std::any_of(kept.begin(), kept.end(), [&](const Expr& k) { return Dominates(op, k, e); }))
      continue;
    std::erase_if(kept, [&](const Expr& k) { return Dominates(op, e, k); });
    kept.push_back(e);
  }
  // Constants last, the rest in canonical order.
  std::stable_sort(kept.begin(), kept.end(), [](const Expr& a, const Expr& b) {
    bool ca = AsInt(a).has_value(), cb = AsInt(b).has_value();
    return ca != cb ? cb : CompareExpr(a, b) < 0;
  });
  Expr out = kept[0];
  for (size_t i = 1; i < kept.size(); ++i) out = Binary::Make(op, out, kept[i]);
  return out;
}

}  // namespace tenon
