#include "loop/pass/math/expand_math.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "loop/pass/math/forms.h"
#include "loop/pass/math/name_shared.h"
#include "loop/rewrite.h"

namespace tenon {

namespace {

// The number in all lanes; nullopt where it is none.
std::optional<double> Number(const Expr& e) {
  if (const auto* same = As<Broadcast>(e)) return Number(same->value);
  const auto* c = As<FloatConst>(e);
  return c ? std::optional(c->value) : std::nullopt;
}

// What the form of a number tells: -|x| is not positive.
math::Bounds BoundsOf(const Expr& e) {
  math::Bounds out;
  const auto* neg = As<Unary>(e);
  const auto* call = neg && neg->op == UnaryOp::kNeg ? As<Call>(neg->value) : nullptr;
  if (call && call->intrinsic == Intrinsic::kAbs) out.most = 0;
  return out;
}

// And what a comparison tells that holds or not, of a number that is not NaN.
void Learn(const Binary& compared, bool holds, const Expr& e, math::Bounds* out) {
  const bool left = StructuralEqual(compared.lhs, e);
  if (!left && !StructuralEqual(compared.rhs, e)) return;
  const std::optional<double> c = Number(left ? compared.rhs : compared.lhs);
  const bool less = compared.op == BinaryOp::kLt || compared.op == BinaryOp::kLe;
  const bool greater = compared.op == BinaryOp::kGt || compared.op == BinaryOp::kGe;
  if (!c || std::isnan(*c) || (!less && !greater)) return;
  if ((less == left) == holds) {
    out->most = std::min(out->most, *c);
  } else {
    out->least = std::max(out->least, *c);
  }
}

// Null where the intrinsic stays as it is.
Expr Form(const math::Builder& b, Intrinsic intrinsic, const std::vector<Expr>& args,
          const math::Bounds& bounds) {
  const Expr& x = args[0];
  switch (intrinsic) {
    case Intrinsic::kExp: return math::Exp(b, x, bounds);
    case Intrinsic::kExp2: return math::Exp2(b, x);
    case Intrinsic::kLog: return math::Log(b, x);
    case Intrinsic::kExp10: return math::Exp10(b, x);
    case Intrinsic::kExpm1: return math::Expm1(b, x);
    case Intrinsic::kLog2: return math::Log2(b, x);
    case Intrinsic::kLog10: return math::Log10(b, x);
    case Intrinsic::kLog1p: return math::Log1p(b, x);
    case Intrinsic::kRsqrt: return b.C(1) / b.Sqrt(x);
    case Intrinsic::kPow: return math::Pow(b, x, args[1]);
    case Intrinsic::kSin: return math::Sin(b, x);
    case Intrinsic::kCos: return math::Cos(b, x);
    case Intrinsic::kTan: return math::Tan(b, x);
    case Intrinsic::kAsin: return math::Asin(b, x);
    case Intrinsic::kAcos: return math::Acos(b, x);
    case Intrinsic::kAtan: return math::Atan(b, x);
    case Intrinsic::kAtan2: return math::Atan2(b, x, args[1]);
    case Intrinsic::kSinh: return math::Sinh(b, x);
    case Intrinsic::kCosh: return math::Cosh(b, x);
    case Intrinsic::kTanh: return math::Tanh(b, x);
    case Intrinsic::kAsinh: return math::Asinh(b, x);
    case Intrinsic::kAcosh: return math::Acosh(b, x);
    case Intrinsic::kAtanh: return math::Atanh(b, x);
    case Intrinsic::kHypot: return math::Hypot(b, x, args[1]);
    case Intrinsic::kErf: return math::Erf(b, x);
    case Intrinsic::kSigmoid: return math::Sigmoid(b, x);
    default: return nullptr;
  }
}

Expr Expand(const Call& call, bool has_fma, const math::Bounds& bounds) {
  const DType type = call.dtype;
  if (Info(call.intrinsic).type != IntrinsicType::kSame || !type.IsFloat() || type.scalable) {
    return nullptr;
  }
  // Halves are computed as f32 and rounded once.
  const DType wide = type.bits >= 32 ? type : DType::Float(32).WithLanes(type.lanes);
  std::vector<Expr> args;
  for (const Expr& a : call.args) args.push_back(wide == type ? a : CastExpr::Make(wide, a));
  const Expr form = Form(math::Builder(wide, has_fma), call.intrinsic, args, bounds);
  return form && wide != type ? CastExpr::Make(type, form) : form;
}

// A select one of whose sides is a call, expanded for what the condition says of its argument where
// that side is taken; null where it says nothing. What is learned is of this select alone: another
// may share the call.
Expr ExpandSide(const Select& select, bool has_fma) {
  const auto* compared = As<Binary>(select.condition);
  if (!compared || !Info(compared->op).is_comparison) return nullptr;
  const auto side = [&](const Expr& value, bool holds) -> Expr {
    const auto* call = As<Call>(value);
    if (!call || call->intrinsic != Intrinsic::kExp) return value;
    math::Bounds bounds = BoundsOf(call->args[0]);
    Learn(*compared, holds, call->args[0], &bounds);
    const Expr form = Expand(*call, has_fma, bounds);
    return form ? form : value;
  };
  const Expr on_true = side(select.on_true, true), on_false = side(select.on_false, false);
  if (on_true == select.on_true && on_false == select.on_false) return nullptr;
  return Select::Make(select.condition, on_true, on_false);
}

// A remainder of floats narrower than f64; null where it is something else.
Expr ExpandRemainder(const Binary* n, bool has_fma) {
  if (n == nullptr || n->op != BinaryOp::kMod || !n->dtype.IsFloat() || n->dtype.bits > 32 ||
      n->dtype.scalable) {
    return nullptr;
  }
  return math::Remainder(math::Builder(n->dtype, has_fma), n->lhs, n->rhs);
}

}  // namespace

Expr ExpandMathCall(const Call& call, bool has_fma) {
  return Expand(call, has_fma, call.args.empty() ? math::Bounds{} : BoundsOf(call.args[0]));
}

Module ExpandMath(const Module& module, const PassContext& context) {
  const bool has_fma = context.target && context.target->HasFma();
  return MapFuncs(module, [&](const Func& func) {
    const Stmt sides = PostOrderRewrite(func->body, [&](const NodeRef& n) -> NodeRef {
      const auto* select = As<Select>(n);
      Expr expanded = select ? ExpandSide(*select, has_fma) : nullptr;
      return expanded ? NodeRef(expanded) : n;
    });
    const Stmt body = PostOrderRewrite(sides, [&](const NodeRef& n) -> NodeRef {
      const auto* call = As<Call>(n);
      Expr expanded =
          call ? ExpandMathCall(*call, has_fma) : ExpandRemainder(As<Binary>(n), has_fma);
      return expanded ? NodeRef(expanded) : n;
    });
    return NameShared(WithBody(func, body));
  });
}

}  // namespace tenon
