// The driver of simplification: children first, then rules at the root until nothing changes.
#include "arith/analyzer_impl.h"
#include "arith/interval.h"
#include "arith/rules.h"
#include "ir/visit.h"
#include "support/check.h"

namespace tenon {

namespace {

// Rules that undo each other would be a bug; this keeps such a bug from hanging a compile.
constexpr int kMaxRounds = 8;
constexpr int kMaxSelectDepth = 4;

class ChildSimplifier final : public ChildMapper {
 public:
  explicit ChildSimplifier(Analyzer::Impl& impl) : impl_(impl) {}
  NodeRef MapChild(const NodeRef& child, FieldRole role) override {
    const auto* e = As<ExprNode>(child);
    return e && role == FieldRole::kChild ? NodeRef(impl_.Simplify(Expr(e))) : child;
  }

 private:
  Analyzer::Impl& impl_;
};

}  // namespace

Expr Analyzer::Impl::Simplify(const Expr& e) {
  if (!e) return e;
  if (IsA<IntConst>(e) || IsA<FloatConst>(e) || IsA<StringConst>(e)) return e;
  const ExprIds::Id id = ids.Of(e);
  Results::Answer<Expr>& own = Layer().At(id).simplified;
  if (own.Serves(e, proof_depth)) {
    // An equal expression that is its own simplest form.
    return own.value == e || ids.Of(own.value) == id ? e : own.value;
  }
  Expr current = e;
  for (int round = 0; round < kMaxRounds; ++round) {
    Expr next = RewriteRoot(current);
    if (ids.Same(next, current)) break;
    current = next;
    const auto& known = Layer().At(ids.Of(current)).simplified;
    if (known.Serves(current, proof_depth)) {
      current = known.value;
      break;
    }
  }
  if (ids.Same(current, e)) current = e;
  own.Set(e, proof_depth, current);
  if (current != e) Layer().At(ids.Of(current)).simplified.Set(current, proof_depth, current);
  return current;
}

Expr Analyzer::Impl::Children(const Expr& e) {
  ChildSimplifier mapper(*this);
  NodeRef out = e->MapChildren(mapper);
  return Expr(static_cast<const ExprNode*>(out.get()));
}

Expr Analyzer::Impl::RewriteRoot(const Expr& e) {
  if (e->dtype == DType::Bool()) {
    if (auto known_value = Known(e); known_value && !AsInt(e)) return BoolConst(*known_value);
  }
  if (const auto* n = As<VarNode>(e)) {
    const VarFacts* facts = FindFacts(n);
    if (facts && facts->value) return Simplify(facts->value);
    if (facts && facts->range.IsPoint() && n->dtype.IsScalar())
      return MakeIntConst(n->dtype, facts->range.min);
    return e;
  }
  if (IsArithmetic(e)) return SimplifySum(e);
  if (IsA<Binary>(e)) return RewriteBinary(e);
  if (IsA<Select>(e)) return RewriteSelect(e);
  if (IsA<CastExpr>(e)) return RewriteCast(e);
  if (IsA<Load>(e)) return RewriteLoad(e);
  if (IsA<Call>(e)) return RewriteCall(e);
  Expr simple = Children(e);
  if (const auto* n = As<Unary>(simple)) {
    if (n->op == UnaryOp::kNot) return SimplifyNot(n->value);
    if (Expr folded = FoldUnary(n->op, n->value)) return folded;
    if (n->dtype.IsIndex() && n->op == UnaryOp::kNeg) {
      return Binary::Make(BinaryOp::kMul, n->value, MakeIntConst(n->dtype, -1));
    }
    Expr ruled = ApplyRules(ids, simple);
    return ruled ? ruled : simple;
  }
  if (const auto* n = As<Ramp>(simple); n && IsZero(n->stride) && n->dtype.IsIndex()) {
    return Broadcast::Make(n->base, n->dtype.lanes, n->dtype.scalable);
  }
  return simple;
}

// op(broadcast(a), broadcast(b)) → broadcast(op(a, b)): once instead of in every lane.
static Expr LiftBroadcasts(const Binary& n) {
  const auto *a = As<Broadcast>(n.lhs), *b = As<Broadcast>(n.rhs);
  if (!a || !b) return nullptr;
  return Broadcast::Make(Binary::Make(n.op, a->value, b->value), n.dtype.lanes, n.dtype.scalable);
}

Expr Analyzer::Impl::RewriteBinary(const Expr& e) {
  Expr simple = Children(e);
  const auto* n = As<Binary>(simple);
  if (Expr folded = FoldBinary(n->op, n->lhs, n->rhs)) return folded;
  if (Expr identity = FoldIdentity(n->op, n->lhs, n->rhs)) return identity;
  if (Expr ruled = ApplyRules(ids, simple)) return ruled;
  if (Expr lifted = LiftBroadcasts(*n)) return lifted;
  if (n->lhs->dtype.IsIndex() && n->lhs->dtype.IsVector()) {
    if (Expr out = SimplifyVector(n->op, n->lhs, n->rhs)) return out;
  }
  const bool index = n->dtype.IsIndex() && n->dtype.IsScalar();
  switch (n->op) {
    case BinaryOp::kDiv:
    case BinaryOp::kMod: return index ? SimplifyDivMod(n->op, n->lhs, n->rhs) : simple;
    case BinaryOp::kMin:
    case BinaryOp::kMax: return SimplifyMinMax(n->op, n->lhs, n->rhs);
    case BinaryOp::kEq:
    case BinaryOp::kNe:
    case BinaryOp::kLt:
    case BinaryOp::kLe:
    case BinaryOp::kGt:
    case BinaryOp::kGe: return SimplifyComparison(n->op, n->lhs, n->rhs);
    case BinaryOp::kAnd:
    case BinaryOp::kOr: return SimplifyLogic(n->op, n->lhs, n->rhs);
    case BinaryOp::kAdd:
    case BinaryOp::kSub:
    case BinaryOp::kMul:
    case BinaryOp::kBitAnd:
    case BinaryOp::kBitOr:
    case BinaryOp::kBitXor:
    case BinaryOp::kShl:
    case BinaryOp::kShr: return simple;  // scalar index sums do not come here
  }
  TN_UNREACHABLE();
}

Expr Analyzer::Impl::RewriteSelect(const Expr& e) {
  const auto* n = As<Select>(e);
  Expr condition = Simplify(n->condition);
  if (auto known_value = AsInt(condition))
    return Simplify(*known_value != 0 ? n->on_true : n->on_false);
  // A branch is evaluated only where the condition (its opposite) holds.
  auto under = [&](const Expr& assumption, const Expr& branch) {
    bool assume = condition->dtype.IsScalar() && select_depth < kMaxSelectDepth &&
                  select_budget > 0 && !AsFloat(branch) && !IsA<VarNode>(branch);
    if (!assume) return Simplify(branch);
    --select_budget;
    ++select_depth;
    size_t token = Assume(assumption);
    Expr out = Simplify(branch);
    Retract(token);
    --select_depth;
    return out;
  };
  Expr on_true = under(condition, n->on_true);
  Expr on_false = under(Unary::Make(UnaryOp::kNot, condition), n->on_false);
  bool unchanged = condition == n->condition && on_true == n->on_true && on_false == n->on_false;
  Expr simple = unchanged ? e : Select::Make(condition, on_true, on_false);
  Expr ruled = ApplyRules(ids, simple);
  return ruled ? ruled : simple;
}

Expr Analyzer::Impl::RewriteCast(const Expr& e) {
  Expr simple = Children(e);
  const auto* n = As<CastExpr>(simple);
  if (!n) return simple;
  if (Expr folded = FoldCast(n->dtype, n->value)) return folded;
  if (const auto* b = As<Broadcast>(n->value)) {
    return Broadcast::Make(Simplify(CastExpr::Make(n->dtype.Element(), b->value)), n->dtype.lanes,
                           n->dtype.scalable);
  }
  // There and back again through a type that holds the value.
  const auto* inner = As<CastExpr>(n->value);
  if (inner && inner->value->dtype == n->dtype && !n->dtype.IsFloat() &&
      !n->value->dtype.IsFloat() && !n->dtype.IsHandle() && !n->value->dtype.IsHandle() &&
      !n->value->dtype.IsBool()) {
    bool same_width = n->value->dtype.bits == n->dtype.bits && n->dtype.bits == 64;
    if (same_width || Contains(TypeRange(n->value->dtype), Bounds(inner->value)))
      return inner->value;
  }
  return simple;
}

Expr Analyzer::Impl::RewriteLoad(const Expr& e) {
  Expr simple = Children(e);
  const auto* n = As<Load>(simple);
  auto mask = n->mask ? AsInt(n->mask) : std::nullopt;
  if (!mask) return simple;
  if (*mask == 0) return n->dtype.IsHandle() ? simple : MakeIntConst(n->dtype, 0);
  return Load::Make(n->buffer, n->indices);
}

Expr Analyzer::Impl::RewriteCall(const Expr& e) {
  Expr simple = Children(e);
  Expr folded = FoldCall(*As<Call>(simple));
  return folded ? folded : simple;
}

}  // namespace tenon
