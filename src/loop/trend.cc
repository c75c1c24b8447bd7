#include "loop/trend.h"

#include "ir/visit.h"

namespace tenon {

Trend Turned(Trend t) {
  if (t == Trend::kRises) return Trend::kFalls;
  return t == Trend::kFalls ? Trend::kRises : t;
}

Trend Both(Trend a, Trend b) {
  if (a == Trend::kNone || a == b) return b;
  return b == Trend::kNone ? a : Trend::kUnknown;
}

namespace {

Trend Scaled(Trend t, const Expr& factor, const Var& v, Analyzer* analyzer) {
  if (UsesVar(factor, v.get())) return Trend::kUnknown;
  if (analyzer->CanProve(Ge(factor, IndexConst(0)))) return t;
  return analyzer->CanProve(Le(factor, IndexConst(0))) ? Turned(t) : Trend::kUnknown;
}

}  // namespace

Trend TrendOf(const Expr& e, const Var& v, Analyzer* analyzer) {
  if (!UsesVar(e, v.get())) return Trend::kNone;
  if (e.get() == v.get()) return Trend::kRises;
  if (!e->dtype.IsIndex() && e->dtype != DType::Int(64)) return Trend::kUnknown;  // it may wrap
  if (const auto* cast = As<CastExpr>(e)) return TrendOf(cast->value, v, analyzer);
  const auto* b = As<Binary>(e);
  if (!b) return Trend::kUnknown;
  switch (b->op) {
    case BinaryOp::kAdd:
    case BinaryOp::kMin:
    case BinaryOp::kMax: return Both(TrendOf(b->lhs, v, analyzer), TrendOf(b->rhs, v, analyzer));
    case BinaryOp::kSub:
      return Both(TrendOf(b->lhs, v, analyzer), Turned(TrendOf(b->rhs, v, analyzer)));
    case BinaryOp::kMul:
      if (UsesVar(b->lhs, v.get()))
        return Scaled(TrendOf(b->lhs, v, analyzer), b->rhs, v, analyzer);
      return Scaled(TrendOf(b->rhs, v, analyzer), b->lhs, v, analyzer);
    case BinaryOp::kDiv: return Scaled(TrendOf(b->lhs, v, analyzer), b->rhs, v, analyzer);
    default: return Trend::kUnknown;  // NOLINT: the others do not keep an order
  }
}

namespace {

// Whether e rises with its part `rest`, a remainder, and changes with v in nothing else.
bool IsLargeWith(const Expr& e, const Expr& rest, const Var& v, Analyzer* analyzer) {
  const Var part = VarNode::Make("rest");
  const Expr other =
      PostOrderRewrite(e, [&](const NodeRef& n) { return n == rest ? NodeRef(part) : n; });
  return !UsesVar(other, v.get()) && TrendOf(other, part, analyzer) == Trend::kRises &&
         analyzer->CanProve(Le(IndexConst(0), As<Binary>(rest)->rhs));
}

}  // namespace

Expr WhereItWraps(const Expr& e, const Var& v, bool* exact, Analyzer* analyzer) {
  Expr found, rest;
  PreOrder(e, [&](const NodeRef& n) {
    const auto* mod = As<Binary>(n);
    if (!mod || mod->op != BinaryOp::kMod || UsesVar(mod->rhs, v.get())) return true;
    std::optional<AffineForm> form = DetectAffine(mod->lhs, {v});
    if (!form || !IsOne(form->coefficients[0])) return true;
    found = mod->rhs - IndexConst(1) - form->base;
    rest = Cast<ExprNode>(n);
    return true;
  });
  if (exact) *exact = found && IsLargeWith(e, rest, v, analyzer);
  return found;
}

}  // namespace tenon
