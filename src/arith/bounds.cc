// Constant ranges and divisibility of expressions. Vectors: a range that holds every lane.
#include "arith/analyzer_impl.h"
#include "arith/int_math.h"
#include "arith/interval.h"
#include "arith/modular.h"

namespace tenon {

namespace {

// A result of data integers that leaves its type's range has wrapped: anything is possible.
Interval Wrapped(DType type, Interval range) {
  if (type.IsIndex()) return range;
  Interval limits = TypeRange(type);
  return Contains(limits, range) ? range : limits;
}

Interval BitAndBounds(Interval a, Interval b) {
  if (a.min >= 0 && b.min >= 0) return {0, std::min(a.max, b.max)};
  if (b.min >= 0) return {0, b.max};
  if (a.min >= 0) return {0, a.max};
  return {};
}

Interval ShiftBounds(BinaryOp op, Interval a, Interval b) {
  if (!b.IsPoint() || b.min < 0 || b.min > 62) {
    return op == BinaryOp::kShr && a.min >= 0 ? Interval{0, a.max} : Interval{};
  }
  Interval power = Point(int64_t{1} << b.min);
  return op == BinaryOp::kShl ? Mul(a, power) : FloorDiv(a, power);
}

Interval BinaryBounds(const Binary& n, Interval a, Interval b) {
  bool index = n.dtype.IsIndex();
  switch (n.op) {
    case BinaryOp::kAdd: return Add(a, b);
    case BinaryOp::kSub: return Sub(a, b);
    case BinaryOp::kMul: return Mul(a, b);
    case BinaryOp::kDiv: return index ? FloorDiv(a, b) : TruncDiv(a, b);
    case BinaryOp::kMod: return index ? FloorMod(a, b) : TruncMod(a, b);
    case BinaryOp::kMin: return Min(a, b);
    case BinaryOp::kMax: return Max(a, b);
    case BinaryOp::kBitAnd: return BitAndBounds(a, b);
    case BinaryOp::kShl:
    case BinaryOp::kShr: return ShiftBounds(n.op, a, b);
    case BinaryOp::kBitOr:
    case BinaryOp::kBitXor: return {};
    case BinaryOp::kEq:
    case BinaryOp::kNe:
    case BinaryOp::kLt:
    case BinaryOp::kLe:
    case BinaryOp::kGt:
    case BinaryOp::kGe:
    case BinaryOp::kAnd:
    case BinaryOp::kOr: return {0, 1};
  }
  return {};
}

bool HoldsIntegers(DType type) { return type.IsIndex() || type.IsInt() || type.IsBool(); }

Interval CallBounds(const Call& call) {
  if (call.intrinsic == Intrinsic::kTeamRank) return {0, Interval::kPosInf};
  if (call.intrinsic == Intrinsic::kTeamSize) return {1, Interval::kPosInf};
  if (call.intrinsic == Intrinsic::kVScale) return {1, Interval::kPosInf};
  return TypeRange(call.dtype);
}

}  // namespace

Interval Analyzer::Impl::Bounds(const Expr& e) {
  if (!HoldsIntegers(e->dtype)) return {};
  Results::Answer<Interval>& known = Layer().At(ids.Of(e)).bounds;
  if (!known.Serves(e, proof_depth)) known.Set(e, proof_depth, ComputeBounds(e));
  return known.value;
}

Interval Analyzer::Impl::ComputeBounds(const Expr& e) {
  if (const auto* n = As<IntConst>(e)) {
    bool u64 = n->dtype == DType::UInt(64);
    return u64 && n->value < 0 ? Interval{} : Point(n->value);
  }
  if (const auto* n = As<VarNode>(e)) {
    const VarFacts* facts = FindFacts(n);
    if (!facts) return TypeRange(n->dtype);
    Interval range = Intersect(TypeRange(n->dtype), facts->range);
    return facts->value ? Intersect(range, Bounds(facts->value)) : range;
  }
  if (IsArithmetic(e)) return Bounds(LinearOf(e));
  if (const auto* n = As<Binary>(e)) {
    if (Info(n->op).is_comparison) return {0, 1};
    Interval range = Wrapped(n->dtype, BinaryBounds(*n, Bounds(n->lhs), Bounds(n->rhs)));
    // Unsigned 64-bit values are seen through a signed window: only what cannot wrap there is
    // known.
    if (n->dtype.Element() == DType::UInt(64)) return {};
    return range;
  }
  if (const auto* n = As<Unary>(e)) {
    if (n->op == UnaryOp::kNeg) return Wrapped(n->dtype, Neg(Bounds(n->value)));
    return TypeRange(n->dtype);
  }
  if (const auto* n = As<Select>(e)) return Hull(Bounds(n->on_true), Bounds(n->on_false));
  if (const auto* n = As<CastExpr>(e)) {
    if (!HoldsIntegers(n->value->dtype)) return TypeRange(n->dtype);
    if (n->dtype.IsBool()) return {0, 1};
    Interval limits = TypeRange(n->dtype), range = Bounds(n->value);
    return Contains(limits, range) ? range : limits;
  }
  if (const auto* n = As<Ramp>(e)) {
    Interval last =
        n->dtype.scalable ? Interval{0, Interval::kPosInf} : Interval{0, n->dtype.lanes - 1};
    return Wrapped(n->dtype, Add(Bounds(n->base), Mul(Bounds(n->stride), last)));
  }
  if (const auto* n = As<Broadcast>(e)) return Bounds(n->value);
  if (const auto* n = As<Call>(e)) return CallBounds(*n);
  return TypeRange(e->dtype);
}

// Of its factors' ranges. One that is itself an overgrown product is bounded factor by factor.
Interval Analyzer::Impl::BoundsOfProduct(const Term& t) {
  const ExprIds::Id id = t.id ? t.id : ids.Of(t.product);
  Results::Answer<Interval>& known = Layer().At(id).product;
  if (known.Serves(t.product, proof_depth)) return known.value;
  Interval range = Point(1);
  for (const Expr& atom : ids.FactorsOf(t.product)) {
    const auto* mul = As<Binary>(atom);
    const bool opaque = mul && IsArithmetic(atom);
    range =
        Mul(range, opaque ? BinaryBounds(*mul, Bounds(mul->lhs), Bounds(mul->rhs)) : Bounds(atom));
  }
  known.Set(t.product, proof_depth, range);
  return range;
}

Interval Analyzer::Impl::Bounds(const Linear& sum) {
  Interval range = Point(sum.constant);
  for (const Term& t : sum.terms) range = Add(range, Mul(Point(t.coefficient), BoundsOfProduct(t)));
  // A fact about this very sum, or a multiple of it.
  for (const Inequality& fact : inequalities) {
    if (fact.sum.terms.size() != sum.terms.size()) continue;
    for (const Term& t : sum.terms) {
      if (!ids.Same(t.product, fact.sum.terms[0].product)) continue;
      int64_t scale = t.coefficient / fact.sum.terms[0].coefficient;
      auto rest = scale == 0 ? std::nullopt : AddScaled(ids, sum, fact.sum, -scale);
      if (!rest || !rest->IsConstant()) continue;
      Interval half = Mul(Point(scale), {Interval::kNegInf, fact.bound});
      range = Intersect(range, Add(half, Point(rest->constant)));
    }
  }
  return range;
}

ModularSet Analyzer::Impl::ModularOf(const Expr& e) {
  if (!HoldsIntegers(e->dtype) || !e->dtype.IsScalar()) return {};
  Results::Answer<ModularSet>& known = Layer().At(ids.Of(e)).modular;
  if (!known.Serves(e, proof_depth)) known.Set(e, proof_depth, ComputeModular(e));
  return known.value;
}

ModularSet Analyzer::Impl::ComputeModular(const Expr& e) {
  if (const auto* n = As<IntConst>(e)) return {0, n->value};
  if (const auto* n = As<VarNode>(e)) {
    const VarFacts* facts = FindFacts(n);
    if (!facts) return {};
    return facts->value ? Meet(facts->modular, ModularOf(facts->value)) : facts->modular;
  }
  if (IsArithmetic(e)) return ModularOf(LinearOf(e));
  if (const auto* n = As<Select>(e)) return Join(ModularOf(n->on_true), ModularOf(n->on_false));
  const auto* n = As<Binary>(e);
  if (!n || !n->dtype.IsIndex()) return {};
  switch (n->op) {
    case BinaryOp::kMin:
    case BinaryOp::kMax: return Join(ModularOf(n->lhs), ModularOf(n->rhs));
    case BinaryOp::kDiv:
      if (auto d = AsInt(n->rhs)) return FloorDiv(ModularOf(n->lhs), *d);
      return {};
    case BinaryOp::kMod:
      if (auto d = AsInt(n->rhs)) return FloorMod(ModularOf(n->lhs), *d);
      return {};
    default: return {};  // NOLINT: the rest says nothing about divisibility
  }
}

ModularSet Analyzer::Impl::ModularOf(const Linear& sum) {
  ModularSet set{0, sum.constant};
  for (const Term& t : sum.terms) {
    ModularSet product{0, t.coefficient};
    for (const Expr& atom : ids.FactorsOf(t.product)) {
      product = Mul(product, IsArithmetic(atom) ? ModularSet{} : ModularOf(atom));
    }
    set = Add(set, product);
  }
  return set;
}

}  // namespace tenon
