// Floor division and modulo of index scalars.
//
// For a constant divisor d the dividend n is written d * q + r, with every whole multiple of d
// moved to q; then n / d = q + r / d and n % d = r % d, and only r is left to think about:
//   range      r lies within one period [k d, k d + d): r / d = k, r % d = r - k d.
//   grouping   r = g * hi + lo with g a divisor of d and 0 <= lo < g: r / d = hi / (d / g), r % d =
//   g * (hi % (d / g)) + lo.
//              It turns (io * 4 + ii) / 8 into io / 2 and undoes the flattening of any mixed-radix
//              index.
//   nesting    (x / b + c) / d = (x + b c) / (b d);  (x % (d e)) / d = (x / d) % e;  (x % (d e)) %
//   d = x % d.
//              Where b or d is symbolic and both are positive, (x / b) / d = x / (b d).
#include <algorithm>

#include "arith/analyzer_impl.h"
#include "arith/int_math.h"
#include "arith/interval.h"

namespace tenon {

namespace {

struct Split {
  Linear quotient, rest;
};

// n = d * quotient + rest; the rest's constant is in [0, d), its coefficients are below d in
// magnitude.
Split SplitMultiples(const Linear& n, int64_t d) {
  Split out;
  out.quotient.constant = FloorDivInt(n.constant, d);
  out.rest.constant = FloorModInt(n.constant, d);
  for (const Term& t : n.terms) {
    if (t.coefficient / d != 0) out.quotient.terms.push_back({t.product, t.coefficient / d});
    if (t.coefficient % d != 0) out.rest.terms.push_back({t.product, t.coefficient % d});
  }
  return out;
}

Expr Sum(const Expr& a, const Expr& b) { return Binary::Make(BinaryOp::kAdd, a, b); }

// Divisors of d shared with a coefficient, largest first.
std::vector<int64_t> GroupSizes(const Linear& rest, int64_t d) {
  std::vector<int64_t> sizes;
  for (const Term& t : rest.terms) sizes.push_back(GcdInt(t.coefficient, d));
  std::sort(sizes.begin(), sizes.end(), std::greater<>());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  std::erase(sizes, 1);
  return sizes;
}

}  // namespace

Expr Analyzer::Impl::SimplifyDivMod(BinaryOp op, const Expr& lhs, const Expr& rhs) {
  Linear n = LinearOf(lhs);
  Recombine(&n);
  if (auto d = AsInt(rhs)) {
    if (*d > 0) return DivModByConst(op, n, *d);
    return Binary::Make(op, lhs, rhs);
  }
  if (Expr out = DivModByExpr(op, n, rhs)) return out;
  return Binary::Make(op, lhs, rhs);
}

Expr Analyzer::Impl::DivModByConst(BinaryOp op, const Linear& n, int64_t d) {
  const bool is_div = op == BinaryOp::kDiv;
  if (d == 1) return is_div ? ToExpr(n) : IndexConst(0);
  Linear dividend = n;
  if (!is_div) DropInnerMod(&dividend, d);
  auto normal = Normalize(ids, SplitMultiples(dividend, d).rest);
  if (!normal) return Binary::Make(op, ToExpr(n), IndexConst(d));
  const Linear& rest = *normal;
  Linear quotient = is_div ? SplitMultiples(dividend, d).quotient : ConstantSum(0);
  auto answer = [&](const Expr& of_rest) {
    return quotient.IsConstant() && quotient.constant == 0 ? of_rest
                                                           : Sum(ToExpr(quotient), of_rest);
  };

  Interval range = Bounds(rest);
  if (range.min != Interval::kNegInf && range.max != Interval::kPosInf &&
      FloorDivInt(range.min, d) == FloorDivInt(range.max, d)) {
    int64_t period = FloorDivInt(range.min, d);
    if (is_div) return answer(IndexConst(period));
    auto shift = CheckedMul(period, d);
    auto out = shift ? AddScaled(ids, rest, ConstantSum(*shift), -1) : std::nullopt;
    if (out) return ToExpr(*out);
  }
  if (!is_div) {
    ModularSet set = ModularOf(rest);
    if (set.coefficient % d == 0) return IndexConst(FloorModInt(set.base, d));
  }
  for (int64_t g : GroupSizes(rest, d)) {
    if (Expr out = DivModGrouped(op, rest, d, g)) return answer(out);
  }
  if (Expr out = DivModAligned(op, rest, d)) return answer(out);
  if (Expr out = is_div ? DivNested(rest, d) : nullptr) return answer(out);
  return answer(Binary::Make(op, ToExpr(rest), IndexConst(d)));
}

// Under % d, a term c * (x % a) with d | c * a may as well be c * x.
void Analyzer::Impl::DropInnerMod(Linear* sum, int64_t d) {
  for (size_t i = 0; i < sum->terms.size(); ++i) {
    Term t = sum->terms[i];
    const auto* mod = As<Binary>(t.product);
    if (!mod || mod->op != BinaryOp::kMod) continue;
    auto a = AsInt(mod->rhs);
    auto whole = a ? CheckedMul(t.coefficient, *a) : std::nullopt;
    if (!whole || *whole % d != 0) continue;
    auto out = AddScaled(ids, *sum, AtomSum(t.product), -t.coefficient);
    if (out) out = AddScaled(ids, *out, LinearOf(mod->lhs), t.coefficient);
    if (!out) continue;
    *sum = std::move(*out);
    i = static_cast<size_t>(-1);  // x may hold another
  }
}

Expr Analyzer::Impl::DivModGrouped(BinaryOp op, const Linear& rest, int64_t d, int64_t g) {
  Linear high = ConstantSum(FloorDivInt(rest.constant, g));
  Linear low = ConstantSum(FloorModInt(rest.constant, g));
  for (const Term& t : rest.terms) {
    if (t.coefficient % g == 0) {
      high.terms.push_back({t.product, t.coefficient / g});
    } else {
      low.terms.push_back(t);
    }
  }
  Interval range = Bounds(low);
  if (range.min == Interval::kNegInf || range.max == Interval::kPosInf) return nullptr;
  int64_t period = FloorDivInt(range.min, g);
  if (period != FloorDivInt(range.max, g)) return nullptr;
  auto constant = CheckedAdd(high.constant, period);
  auto shift = CheckedMul(period, g);
  auto low_constant = shift ? CheckedSub(low.constant, *shift) : std::nullopt;
  if (!constant || !low_constant) return nullptr;
  high.constant = *constant;
  low.constant = *low_constant;
  auto hi = Normalize(ids, high), lo = Normalize(ids, low);
  if (!hi || !lo) return nullptr;
  Expr part = DivModByConst(op, *hi, d / g);
  if (op == BinaryOp::kDiv) return part;
  return Sum(Binary::Make(BinaryOp::kMul, part, IndexConst(g)), ToExpr(*lo));
}

// Terms known to be multiples of d, though their coefficients are not, and a rest below d.
Expr Analyzer::Impl::DivModAligned(BinaryOp op, const Linear& rest, int64_t d) {
  Linear whole, low = ConstantSum(rest.constant);
  for (const Term& t : rest.terms) {
    ModularSet set = ModularOf(Linear{{t}, 0});
    bool multiple = set.coefficient % d == 0 && set.base % d == 0;
    (multiple ? whole : low).terms.push_back(t);
  }
  if (whole.IsConstant() || (low.IsConstant() && low.constant == 0)) return nullptr;
  if (!Contains({0, d - 1}, Bounds(low))) return nullptr;
  if (op == BinaryOp::kMod) return ToExpr(low);
  return Binary::Make(op, ToExpr(whole), IndexConst(d));
}

Expr Analyzer::Impl::DivNested(const Linear& rest, int64_t d) {
  if (rest.terms.size() != 1 || rest.terms[0].coefficient != 1) return nullptr;
  const auto* inner = As<Binary>(rest.terms[0].product);
  auto b = inner && (inner->op == BinaryOp::kDiv || inner->op == BinaryOp::kMod) ? AsInt(inner->rhs)
                                                                                 : std::nullopt;
  if (!b) return DivNestedByExpr(rest, IndexConst(d));
  if (*b <= 0) return nullptr;
  if (inner->op == BinaryOp::kMod) {
    if (rest.constant != 0 || *b % d != 0) return nullptr;
    Expr x = Binary::Make(BinaryOp::kDiv, inner->lhs, IndexConst(d));
    return Binary::Make(BinaryOp::kMod, x, IndexConst(*b / d));
  }
  auto product = CheckedMul(*b, d);
  auto shift = CheckedMul(*b, rest.constant);
  auto x = shift ? AddScaled(ids, LinearOf(inner->lhs), ConstantSum(*shift), 1) : std::nullopt;
  if (!product || !x) return nullptr;
  return Binary::Make(BinaryOp::kDiv, ToExpr(*x), IndexConst(*product));
}

Expr Analyzer::Impl::DivNestedByExpr(const Linear& n, const Expr& d) {
  if (n.terms.size() != 1 || n.terms[0].coefficient != 1 || n.constant != 0) return nullptr;
  const auto* inner = As<Binary>(n.terms[0].product);
  if (!inner || inner->op != BinaryOp::kDiv) return nullptr;
  if (Bounds(inner->rhs).min < 1 || Bounds(d).min < 1) return nullptr;
  const Expr both = SimplifySum(Binary::Make(BinaryOp::kMul, inner->rhs, d));
  return Binary::Make(BinaryOp::kDiv, inner->lhs, both);
}

namespace {

// factors \ divisor as multisets, or nullopt when the divisor is not among them.
std::optional<std::vector<Expr>> RemoveFactors(ExprIds& ids, std::vector<Expr> factors,
                                               const std::vector<Expr>& divisor) {
  for (const Expr& d : divisor) {
    auto it =
        std::find_if(factors.begin(), factors.end(), [&](const Expr& f) { return ids.Same(f, d); });
    if (it == factors.end()) return std::nullopt;
    factors.erase(it);
  }
  return factors;
}

}  // namespace

// Terms that are multiples of a symbolic divisor move to the quotient (it is not zero); the rest
// vanishes where it is known to be in [0, d).
Expr Analyzer::Impl::DivModByExpr(BinaryOp op, const Linear& n, const Expr& d) {
  const bool is_div = op == BinaryOp::kDiv;
  Linear divisor = LinearOf(d);
  Linear quotient, rest = ConstantSum(n.constant);
  if (divisor.terms.size() == 1 && divisor.constant == 0) {
    const std::vector<Expr>& factors = ids.FactorsOf(divisor.terms[0].product);
    int64_t scale = divisor.terms[0].coefficient;
    for (const Term& t : n.terms) {
      auto left = t.coefficient % scale == 0 ? RemoveFactors(ids, ids.FactorsOf(t.product), factors)
                                             : std::nullopt;
      if (!left || scale == -1) {
        rest.terms.push_back(t);
      } else if (left->empty()) {
        quotient.constant += t.coefficient / scale;
      } else {
        quotient.terms.push_back({ProductOf(ids, std::move(*left)), t.coefficient / scale});
      }
    }
  } else if (auto k = ScaleBetween(n, divisor)) {
    quotient.constant = *k;
    rest = ConstantSum(0);
  } else {
    rest = n;
  }
  auto q = Normalize(ids, quotient);
  if (!q) return nullptr;
  // 0 <= rest < d, or -d <= rest < 0.
  for (int64_t period : {0, -1}) {
    auto low = AddScaled(ids, rest, divisor, -period);  // rest - period * d, to be in [0, d)
    auto negated = low ? Scale(*low, -1) : std::nullopt;
    auto room = low ? AddScaled(ids, *low, divisor, -1) : std::nullopt;
    auto above = room ? AddScaled(ids, *room, ConstantSum(1), 1) : std::nullopt;
    if (!negated || !above || !ProveNonPositive(*negated) || !ProveNonPositive(*above)) continue;
    if (!is_div) return ToExpr(*low);
    auto out = AddScaled(ids, *q, ConstantSum(period), 1);
    if (out) return ToExpr(*out);
  }
  if (rest.IsConstant() && rest.constant == 0) return is_div ? ToExpr(*q) : IndexConst(0);
  if (is_div && q->IsConstant() && q->constant == 0) {
    if (Expr out = DivNestedByExpr(rest, d)) return out;
  }
  Expr last = Binary::Make(op, ToExpr(rest), d);
  if (!is_div || (q->IsConstant() && q->constant == 0)) return last;
  return Sum(ToExpr(*q), last);
}

// k with n = k * d, for sums of several terms.
std::optional<int64_t> Analyzer::Impl::ScaleBetween(const Linear& n, const Linear& d) {
  if (n.IsConstant() || d.IsConstant() || d.terms[0].coefficient == -1) return std::nullopt;
  int64_t k = n.terms[0].coefficient / d.terms[0].coefficient;
  auto rest = AddScaled(ids, n, d, -k);
  if (k == 0 || !rest || !rest->IsConstant() || rest->constant != 0) return std::nullopt;
  return k;
}

}  // namespace tenon
