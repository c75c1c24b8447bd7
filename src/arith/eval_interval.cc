// Symbolic interval evaluation: monotone operators map bounds to bounds; where nothing better is
// known, constant ranges.
#include "arith/analyzer_impl.h"
#include "arith/interval.h"
#include "ir/buffer.h"
#include "ir/visit.h"

namespace tenon {

namespace {

// Bounds over one domain. Each bound that it answers holds for all values of the domain's
// variables, and is null where none was found; memo_ is by address, so keep_ has what it knows.
class IntervalEvaluator {
 public:
  IntervalEvaluator(const IntervalMap& domain, Analyzer* analyzer)
      : domain_(domain), analyzer_(*analyzer) {
    for (const auto& [var, range] : domain) vars_.insert(var);
  }

  ExprInterval Eval(const Expr& e) {
    if (auto it = memo_.find(e.get()); it != memo_.end()) return it->second;
    ExprInterval out = Compute(e);
    memo_[e.get()] = out;
    keep_.push_back(e);
    return out;
  }

 private:
  Expr Simple(const Expr& e) { return analyzer_.Simplify(e); }

  ExprInterval Compute(const Expr& e) {
    if (const auto* var = As<VarNode>(e)) {
      auto it = domain_.find(var);
      return it == domain_.end() ? ExprInterval{e, e} : it->second;
    }
    if (!UsesAnyVar(e, vars_)) return {e, e};
    if (e->dtype.IsIndex() && e->dtype.IsScalar()) {
      if (Analyzer::Impl::IsArithmetic(e)) return Sum(e);
      if (const auto* n = As<Binary>(e)) return OfBinary(*n, e);
      // The branch not taken may divide by zero; such a bound must not be handed out.
      const auto* n = As<Select>(e);
      if (n && !MayDivideByZero(e)) return Hull(Eval(n->on_true), Eval(n->on_false));
    }
    return Constant(e);
  }

  static bool MayDivideByZero(const Expr& e) {
    bool found = false;
    PreOrder(e, [&](const NodeRef& node) {
      const auto* n = As<Binary>(node);
      found |= n && (n->op == BinaryOp::kDiv || n->op == BinaryOp::kMod) &&
               AsInt(n->rhs).value_or(0) == 0;
      return !found;
    });
    return found;
  }

  // The constant range of the expression with the domain's variables in scope; unbounded sides are
  // null.
  ExprInterval Constant(const Expr& e) {
    if (!e->dtype.IsIndex()) return {};
    Analyzer::Impl impl;
    for (const auto& [var, range] : domain_) {
      Interval known;
      if (range.min) known.min = analyzer_.ConstBounds(range.min).min;
      if (range.max) known.max = analyzer_.ConstBounds(range.max).max;
      impl.FactsOf(Var(var)).range = known;
    }
    Interval found = impl.Bounds(e);
    ExprInterval out;
    if (found.min != Interval::kNegInf) out.min = IndexConst(found.min);
    if (found.max != Interval::kPosInf) out.max = IndexConst(found.max);
    return out;
  }

  // Sums are taken term by term after cancellation, so that i - i contributes nothing.
  ExprInterval Sum(const Expr& e) {
    Analyzer::Impl impl;
    Linear sum = impl.LinearOf(e);
    impl.Recombine(&sum);
    ExprInterval out{IndexConst(sum.constant), IndexConst(sum.constant)};
    for (const Term& t : sum.terms) {
      ExprInterval product = Product(Factors(t.product));
      if (t.coefficient < 0) std::swap(product.min, product.max);
      auto add = [&](Expr* side, const Expr& x) {
        *side = *side && x ? *side + x * t.coefficient : nullptr;
      };
      add(&out.min, product.min);
      add(&out.max, product.max);
    }
    if (out.min) out.min = Simple(out.min);
    if (out.max) out.max = Simple(out.max);
    return out;
  }

  ExprInterval Product(const std::vector<Expr>& atoms) {
    Expr fixed = IndexConst(1), moving;
    for (const Expr& a : atoms) {
      if (!UsesAnyVar(a, vars_)) {
        fixed = fixed * a;
      } else if (moving) {
        return Constant(ProductOf(atoms));
      } else {
        moving = a;
      }
    }
    if (!moving) return {fixed, fixed};
    if (Analyzer::Impl::IsArithmetic(moving))
      return Constant(ProductOf(atoms));  // an overgrown product
    ExprInterval range = Eval(moving);
    if (IsOne(fixed)) return range;
    bool positive = analyzer_.CanProve(Ge(fixed, IndexConst(0)));
    if (!positive && !analyzer_.CanProve(Le(fixed, IndexConst(0))))
      return Constant(ProductOf(atoms));
    if (!positive) std::swap(range.min, range.max);
    return {range.min ? range.min * fixed : nullptr, range.max ? range.max * fixed : nullptr};
  }

  ExprInterval OfBinary(const Binary& n, const Expr& e) {
    switch (n.op) {
      case BinaryOp::kMin:
      case BinaryOp::kMax: return OfMinMax(n);
      case BinaryOp::kDiv:
      case BinaryOp::kMod: return OfDivMod(n, e);
      default: return Constant(e);  // NOLINT: sums do not come here
    }
  }

  ExprInterval OfMinMax(const Binary& n) {
    ExprInterval a = Eval(n.lhs), b = Eval(n.rhs);
    const bool is_min = n.op == BinaryOp::kMin;
    auto both = [&](const Expr& x, const Expr& y) {
      return x && y ? Simple(Binary::Make(n.op, x, y)) : nullptr;
    };
    // min is bounded above by either operand, max below.
    auto either = [&](const Expr& x, const Expr& y) { return x && y ? both(x, y) : (x ? x : y); };
    return {is_min ? both(a.min, b.min) : either(a.min, b.min),
            is_min ? either(a.max, b.max) : both(a.max, b.max)};
  }

  ExprInterval OfDivMod(const Binary& n, const Expr& e) {
    if (UsesAnyVar(n.rhs, vars_) || !analyzer_.CanProve(Gt(n.rhs, IndexConst(0))))
      return Constant(e);
    ExprInterval a = Eval(n.lhs);
    auto over = [&](const Expr& x) { return x ? Simple(x / n.rhs) : nullptr; };
    if (n.op == BinaryOp::kDiv) return {over(a.min), over(a.max)};
    // Within one period the remainder grows with the dividend.
    if (a.min && a.max && analyzer_.CanProveEqual(over(a.min), over(a.max))) {
      return {Simple(a.min % n.rhs), Simple(a.max % n.rhs)};
    }
    ExprInterval out{IndexConst(0), Simple(n.rhs - 1)};
    if (a.min && a.max && analyzer_.CanProve(Ge(a.min, IndexConst(0))))
      out.max = Simple(Min(a.max, out.max));
    return out;
  }

  ExprInterval Hull(const ExprInterval& a, const ExprInterval& b) {
    return {a.min && b.min ? Simple(Min(a.min, b.min)) : nullptr,
            a.max && b.max ? Simple(Max(a.max, b.max)) : nullptr};
  }

  const IntervalMap& domain_;
  Analyzer& analyzer_;
  std::unordered_set<const VarNode*> vars_;
  std::unordered_map<const ExprNode*, ExprInterval> memo_;
  std::vector<Expr> keep_;
};

}  // namespace

ExprInterval EvalInterval(const Expr& e, const IntervalMap& domain, Analyzer* analyzer) {
  // The caller's facts concern the variables before they range, so they are used for parts without
  // them alone: one size may be written in several ways, as (w + 1) / 2 and, where it is even, w
  // / 2.
  std::unordered_set<const VarNode*> vars;
  for (const auto& [var, range] : domain) vars.insert(var);
  const Expr known = PostOrderRewrite(e, [&](const NodeRef& n) -> NodeRef {
    const auto* part = As<Binary>(n);
    const bool divides = part && (part->op == BinaryOp::kDiv || part->op == BinaryOp::kMod) &&
                         part->dtype.IsIndex() && part->dtype.IsScalar();
    if (!divides || UsesAnyVar(Cast<ExprNode>(n), vars)) return n;
    return analyzer->Simplify(Cast<ExprNode>(n));
  });
  ExprInterval out = IntervalEvaluator(domain, analyzer).Eval(Simplify(known));
  if (out.min) out.min = analyzer->Simplify(out.min);
  if (out.max) out.max = analyzer->Simplify(out.max);
  return out;
}

}  // namespace tenon
