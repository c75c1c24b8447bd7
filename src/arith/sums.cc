// Sums of products.
#include "arith/analyzer_impl.h"
#include "arith/int_math.h"

namespace tenon {

bool Analyzer::Impl::IsArithmetic(const Expr& e) {
  if (!e->dtype.IsIndex() || !e->dtype.IsScalar()) return false;
  if (const auto* n = As<Unary>(e)) return n->op == UnaryOp::kNeg;
  const auto* n = As<Binary>(e);
  return n && (n->op == BinaryOp::kAdd || n->op == BinaryOp::kSub || n->op == BinaryOp::kMul);
}

const Linear& Analyzer::Impl::LinearOf(const Expr& e) {
  Results::Answer<const Linear*>& known = Layer().At(ids.Of(e)).linear;
  if (known.Serves(e, proof_depth)) return *known.value;
  Linear sum = ComputeLinear(e);
  const Linear& kept = Layer().Keep(std::move(sum));
  known.Set(e, proof_depth, &kept);
  return kept;
}

Linear Analyzer::Impl::ComputeLinear(const Expr& e) {
  if (auto c = AsInt(e)) return ConstantSum(*c);
  if (!IsArithmetic(e)) {
    Expr simple = Simplify(e);
    if (auto c = AsInt(simple)) return ConstantSum(*c);
    return IsArithmetic(simple) ? LinearOf(simple) : AtomSum(simple);
  }
  Linear sum;
  bool fits = Gather(e, 1, &sum);
  auto normal = fits ? Normalize(ids, std::move(sum)) : std::nullopt;
  return normal ? *normal : AtomSum(e);
}

// Adds scale * e to an unordered sum in one walk over additions and constant factors; false: a
// coefficient overflows. What is shared, or needs its own normal form, goes through LinearOf, which
// remembers.
bool Analyzer::Impl::Gather(const Expr& e, int64_t scale, Linear* sum) {
  auto add = [&](const Linear& part) {
    auto constant = CheckedMul(part.constant, scale);
    if (constant) constant = CheckedAdd(sum->constant, *constant);
    if (!constant) return false;
    sum->constant = *constant;
    for (const Term& t : part.terms) {
      auto c = CheckedMul(t.coefficient, scale);
      if (!c) return false;
      sum->terms.push_back({t.product, *c, t.id});
    }
    return true;
  };
  auto child = [&](const Expr& x, int64_t factor) {
    auto product = CheckedMul(scale, factor);
    if (!product) return false;
    if (IsArithmetic(x) && x->IsUnique()) return Gather(x, *product, sum);
    std::swap(scale, *product);
    bool fits = add(LinearOf(x));
    std::swap(scale, *product);
    return fits;
  };
  if (const auto* neg = As<Unary>(e)) return child(neg->value, -1);
  const auto* n = As<Binary>(e);
  if (n->op != BinaryOp::kMul)
    return child(n->lhs, 1) && child(n->rhs, n->op == BinaryOp::kAdd ? 1 : -1);
  if (auto c = AsInt(n->rhs)) return child(n->lhs, *c);
  if (auto c = AsInt(n->lhs)) return child(n->rhs, *c);
  const Linear a = LinearOf(n->lhs);
  auto product = Multiply(ids, a, LinearOf(n->rhs));
  return product ? add(*product) : add(AtomSum(e));
}

std::optional<Linear> Analyzer::Impl::Difference(const Expr& a, const Expr& b) {
  Linear x = LinearOf(a);
  return AddScaled(ids, x, LinearOf(b), -1);
}

namespace {

// The term of a sum with this product, or null.
const Term* FindTerm(ExprIds& ids, const Linear& sum, const Expr& product) {
  for (const Term& t : sum.terms) {
    if (ids.Same(t.product, product)) return &t;
  }
  return nullptr;
}

// True when the sum has every term of `part` with `scale` times its coefficient.
bool ContainsScaled(ExprIds& ids, const Linear& sum, const Linear& part, int64_t scale) {
  if (part.IsConstant()) return false;
  for (const Term& t : part.terms) {
    const Term* found = FindTerm(ids, sum, t.product);
    auto want = CheckedMul(t.coefficient, scale);
    if (!found || !want || found->coefficient != *want) return false;
  }
  return true;
}

// An atom x / d or x % d with a constant d > 1.
const Binary* AsConstDivMod(const Expr& e, BinaryOp op, int64_t* divisor) {
  const auto* n = As<Binary>(e);
  if (!n || n->op != op) return nullptr;
  auto d = AsInt(n->rhs);
  if (!d || *d <= 1) return nullptr;
  *divisor = *d;
  return n;
}

// sum + a * x + b * y, or nullopt.
std::optional<Linear> Combine(ExprIds& ids, const Linear& sum, const Linear& x, int64_t a,
                              const Linear& y, int64_t b) {
  auto out = AddScaled(ids, sum, x, a);
  return out ? AddScaled(ids, *out, y, b) : out;
}

}  // namespace

// k * (x % d) + k * d * (x / d)            → k * x           (any d)
// k * (x % d) + k * d * ((x / d + y) % e)  → k * ((x + d * y) % (d * e))
// k * x - k * d * (x / d)                  → k * (x % d)
//
// The second with a y where digits have been reduced by d and by e apart. The first also where
// sizes multiply both, as they do in an index of several axes:
//
// n * (x % d) + n * d * (x / d)            → n * x
std::optional<Linear> Analyzer::Impl::RecombineOnce(const Linear& sum) {
  for (const Term& t : sum.terms) {
    const auto* n = As<Binary>(t.product);
    std::optional<Linear> out;
    if (n && n->op == BinaryOp::kMod) out = RecombineMod(sum, t, *n);
    if (n && n->op == BinaryOp::kDiv) out = RecombineDiv(sum, t, *n);
    if (n && n->op == BinaryOp::kMul) out = RecombineProduct(sum, t);
    if (out) return out;
  }
  return std::nullopt;
}

// With each remainder among the term's factors.
std::optional<Linear> Analyzer::Impl::RecombineProduct(const Linear& sum, const Term& t) {
  const std::vector<Expr>& factors = ids.FactorsOf(t.product);
  for (size_t i = 0; i < factors.size(); ++i) {
    const auto* mod = As<Binary>(factors[i]);
    if (!mod || mod->op != BinaryOp::kMod) continue;
    std::vector<Expr> others = factors;
    others.erase(others.begin() + static_cast<int64_t>(i));
    if (auto out = RecombineWhole(sum, t, *mod, AtomSum(ProductOf(ids, std::move(others)))))
      return out;
  }
  return std::nullopt;
}

// Whether a term of the sum may be x / d times something, as far as a look tells: quotients are
// costly to simplify, and most sums have none. That of a quotient has another divisor.
bool Analyzer::Impl::MayHoldQuotient(const Linear& sum, const Binary& mod) {
  const auto as_div = [](const Expr& e) {
    const auto* div = As<Binary>(e);
    return div && div->op == BinaryOp::kDiv ? div : nullptr;
  };
  const Linear& x = LinearOf(mod.lhs);
  const bool nested = std::any_of(x.terms.begin(), x.terms.end(),
                                  [&](const Term& t) { return as_div(t.product) != nullptr; });
  return std::any_of(sum.terms.begin(), sum.terms.end(), [&](const Term& t) {
    const Expr* e = &t.product;
    for (const auto* mul = As<Binary>(*e); mul && mul->op == BinaryOp::kMul; mul = As<Binary>(*e)) {
      const Binary* div = as_div(mul->rhs);
      if (div && (nested || ids.Same(div->rhs, mod.rhs))) return true;
      e = &mul->lhs;
    }
    const Binary* div = as_div(*e);
    return div && (nested || ids.Same(div->rhs, mod.rhs));
  });
}

// The term is k * (x % d) * others, and the sum has k * d * (x / d) * others, too.
std::optional<Linear> Analyzer::Impl::RecombineWhole(const Linear& sum, const Term& t,
                                                     const Binary& mod, const Linear& others) {
  if (!MayHoldQuotient(sum, mod)) return std::nullopt;
  const Linear q = LinearOf(Simplify(Binary::Make(BinaryOp::kDiv, mod.lhs, mod.rhs)));
  auto whole = Multiply(ids, q, LinearOf(mod.rhs));
  if (whole) whole = Multiply(ids, *whole, others);
  if (!whole || !ContainsScaled(ids, sum, *whole, t.coefficient)) return std::nullopt;
  const auto x = Multiply(ids, LinearOf(mod.lhs), others);
  auto out = x ? AddScaled(ids, sum, *whole, -t.coefficient) : std::nullopt;
  return out ? Combine(ids, *out, AtomSum(t.product), -t.coefficient, *x, t.coefficient) : out;
}

std::optional<Linear> Analyzer::Impl::RecombineMod(const Linear& sum, const Term& t,
                                                   const Binary& mod) {
  if (auto out = RecombineWhole(sum, t, mod, ConstantSum(1))) return out;
  const int64_t k = t.coefficient;
  auto d = AsInt(mod.rhs);
  auto kd = d ? CheckedMul(k, *d) : std::nullopt;
  if (!kd) return std::nullopt;
  Expr quotient;
  for (const Term& u : sum.terms) {
    int64_t e = 0;
    const Binary* outer = AsConstDivMod(u.product, BinaryOp::kMod, &e);
    if (!outer || u.coefficient != *kd) continue;
    if (!quotient) quotient = Simplify(Binary::Make(BinaryOp::kDiv, mod.lhs, mod.rhs));
    auto de = CheckedMul(*d, e);
    if (!de) continue;
    Linear merged;
    if (ids.Same(outer->lhs, quotient)) {
      merged = AtomSum(Binary::Make(BinaryOp::kMod, mod.lhs, IndexConst(*de)));
    } else {
      const Linear q = LinearOf(quotient), parts = LinearOf(outer->lhs);
      if (!ContainsScaled(ids, parts, q, 1)) continue;
      const auto y = AddScaled(ids, parts, q, -1);
      const auto x = y ? AddScaled(ids, LinearOf(mod.lhs), *y, *d) : std::nullopt;
      if (!x) continue;
      merged = LinearOf(Simplify(Binary::Make(BinaryOp::kMod, ToExpr(*x), IndexConst(*de))));
    }
    auto out = AddScaled(ids, sum, AtomSum(u.product), -*kd);
    if (out) out = Combine(ids, *out, AtomSum(t.product), -k, merged, k);
    if (out) return out;
  }
  return std::nullopt;
}

std::optional<Linear> Analyzer::Impl::RecombineDiv(const Linear& sum, const Term& t,
                                                   const Binary& div) {
  auto d = AsInt(div.rhs);
  if (!d || *d <= 1 || t.coefficient % *d != 0) return std::nullopt;
  int64_t k = -(t.coefficient / *d);
  const Linear x = LinearOf(div.lhs);
  if (!ContainsScaled(ids, sum, x, k)) return std::nullopt;
  Linear mod = AtomSum(Binary::Make(BinaryOp::kMod, div.lhs, div.rhs));
  auto out = AddScaled(ids, sum, AtomSum(t.product), -t.coefficient);
  return out ? Combine(ids, *out, x, -k, mod, k) : out;
}

bool Analyzer::Impl::Recombine(Linear* sum) {
  bool changed = false;
  for (int round = 0; round < 8 && sum->terms.size() > 1; ++round) {
    auto next = RecombineOnce(*sum);
    if (!next) break;
    *sum = std::move(*next);
    changed = true;
  }
  return changed;
}

namespace {

// Equality of the spines of two sums, down to their atoms.
bool SameSpine(const Expr& a, const Expr& b) {
  if (a == b) return true;
  const auto *x = As<Binary>(a), *y = As<Binary>(b);
  if (x && y) {
    return Analyzer::Impl::IsArithmetic(a) && x->op == y->op && x->dtype == y->dtype &&
           SameSpine(x->lhs, y->lhs) && SameSpine(x->rhs, y->rhs);
  }
  return IsA<IntConst>(a) && IsA<IntConst>(b) && a->dtype == b->dtype && AsInt(a) == AsInt(b);
}

}  // namespace

Expr Analyzer::Impl::SimplifySum(const Expr& e) {
  Linear sum = LinearOf(e);
  bool recombined = Recombine(&sum);
  Expr out = ToExpr(sum);
  if (SameSpine(out, e)) return e;
  if (!recombined && IsArithmetic(out)) {
    // Simplified atoms in canonical order: `out` is its own simplest form.
    Results::Of& found = Layer().At(ids.Of(out));
    found.linear.Set(out, proof_depth, &Layer().Keep(std::move(sum)));
    found.simplified.Set(out, proof_depth, out);
  }
  return out;
}

Linear SumOf(const Expr& e) {
  Analyzer::Impl impl;
  Linear sum = impl.LinearOf(e);
  for (Term& t : sum.terms) t.id = 0;
  return sum;
}

std::optional<Expr> NotPositive(const Expr& comparison) {
  const auto* order = As<Binary>(comparison);
  if (!order || !order->lhs->dtype.IsIndex() || !order->lhs->dtype.IsScalar()) return std::nullopt;
  if (order->op == BinaryOp::kLt) return order->lhs - order->rhs + 1;
  if (order->op == BinaryOp::kLe) return order->lhs - order->rhs;
  if (order->op == BinaryOp::kGt) return order->rhs - order->lhs + 1;
  if (order->op == BinaryOp::kGe) return order->rhs - order->lhs;
  return std::nullopt;
}

}  // namespace tenon
