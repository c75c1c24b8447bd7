#include "loop/pass/math/expand_math.h"

#include "loop/pass/math/forms.h"
#include "loop/rewrite.h"

namespace tenon {

// Null where the intrinsic stays as it is.
static Expr Form(const math::Builder& b, Intrinsic intrinsic, const std::vector<Expr>& args) {
  const Expr& x = args[0];
  switch (intrinsic) {
    case Intrinsic::kExp: return math::Exp(b, x);
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

Expr ExpandMathCall(const Call& call, bool has_fma) {
  const DType type = call.dtype;
  if (Info(call.intrinsic).type != IntrinsicType::kSame || !type.IsFloat() || type.scalable) {
    return nullptr;
  }
  // Halves are computed as f32 and rounded once.
  const DType wide = type.bits >= 32 ? type : DType::Float(32).WithLanes(type.lanes);
  std::vector<Expr> args;
  for (const Expr& a : call.args) args.push_back(wide == type ? a : CastExpr::Make(wide, a));
  const Expr form = Form(math::Builder(wide, has_fma), call.intrinsic, args);
  return form && wide != type ? CastExpr::Make(type, form) : form;
}

// A remainder of floats narrower than f64; null where it is something else.
static Expr ExpandRemainder(const Binary* n, bool has_fma) {
  if (n == nullptr || n->op != BinaryOp::kMod || !n->dtype.IsFloat() || n->dtype.bits > 32 ||
      n->dtype.scalable) {
    return nullptr;
  }
  return math::Remainder(math::Builder(n->dtype, has_fma), n->lhs, n->rhs);
}

Module ExpandMath(const Module& module, const PassContext& context) {
  const bool has_fma = context.target && context.target->HasFma();
  return MapFuncs(module, [&](const Func& func) {
    return WithBody(func, PostOrderRewrite(func->body, [&](const NodeRef& n) -> NodeRef {
                      const auto* call = As<Call>(n);
                      Expr expanded = call ? ExpandMathCall(*call, has_fma)
                                           : ExpandRemainder(As<Binary>(n), has_fma);
                      return expanded ? NodeRef(expanded) : n;
                    }));
  });
}

}  // namespace tenon
