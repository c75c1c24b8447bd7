// Elementwise operators: one or two operands, broadcast.
#include <cmath>
#include <limits>

#include "ops/define.h"
#include "support/check.h"

namespace tenon::ops {

using graph::OpKind;

static Expr Intrin(Intrinsic i, Expr x) { return Call::Make(i, {std::move(x)}); }
static Expr IsNan(const Expr& x) { return Intrin(Intrinsic::kIsNan, x); }
static Expr Const(const Expr& like, double v) { return MakeConst(like->dtype, v); }

Expr NanMax(const Expr& a, const Expr& b) {
  if (!a->dtype.IsFloat()) return Max(a, b);
  return Select::Make(Or(Gt(a, b), IsNan(a)), a, b);
}
Expr NanMin(const Expr& a, const Expr& b) {
  if (!a->dtype.IsFloat()) return Min(a, b);
  return Select::Make(Or(Lt(a, b), IsNan(a)), a, b);
}

// min(max(x, lo), hi) that lets NaN through; one compare and select each.
static Expr ClipTo(const Expr& x, const Expr& lo, const Expr& hi) {
  Expr t = Select::Make(Lt(x, lo), lo, x);
  return Select::Make(Gt(t, hi), hi, t);
}

// x (f / 2 + 1 / 2) has the values of x / 2 (f + 1), and is a multiply-add and a product.
static Expr Gelu(const Expr& x, bool tanh_form) {
  const Expr half = Const(x, 0.5);
  if (!tanh_form) {
    Expr erf = Intrin(Intrinsic::kErf, x * Const(x, 0.70710678118654752440));
    return x * (erf * half + half);
  }
  Expr cubic = x + x * x * x * Const(x, 0.044715);
  Expr tanh = Intrin(Intrinsic::kTanh, cubic * Const(x, 0.79788456080286535588));
  return x * (tanh * half + half);
}

// max(x, 0) + log1p(exp(-|x|)), the latter with what 1 + exp has lost in rounding.
static Expr Softplus(const Expr& x) {
  const Expr one = Const(x, 1), tail = Intrin(Intrinsic::kExp, -Intrin(Intrinsic::kAbs, x));
  const Expr whole = tail + one, lost = tail - (whole - one);
  return NanMax(x, Const(x, 0)) + (Intrin(Intrinsic::kLog, whole) + lost / whole);
}

static Expr Sign(const Expr& x) {
  Expr zero = Const(x, 0);
  Expr sign = Select::Make(Gt(x, zero), Const(x, 1),
                           Select::Make(Lt(x, zero), MakeIntConst(x->dtype, -1), zero));
  return x->dtype.IsFloat() ? Select::Make(IsNan(x), x, sign) : sign;
}

static Expr IsInf(const OpContext& op, const Expr& x) {
  Expr no = BoolConst(false);
  Expr out = no;
  if (op.node->attrs.Get<bool>("positive", true)) out = Or(out, Eq(x, HighestOf(x->dtype)));
  if (op.node->attrs.Get<bool>("negative", true)) out = Or(out, Eq(x, LowestOf(x->dtype)));
  return out;
}

// A bool is the byte 0 or 1.
static Expr BitCast(DType to, Expr x) {
  const DType byte = DType::UInt(8);
  if (x->dtype == to) return x;
  if (x->dtype.IsBool()) x = CastExpr::Make(byte, x);
  if (to.IsBool()) return CastExpr::Make(to, x);
  return x->dtype == to ? x : Call::Make(Intrinsic::kReinterpret, {x}, to);
}

// Several steps, each of which would be rounded.
static bool IsFormula(OpKind op) {
  return op == OpKind::kSoftplus || op == OpKind::kGelu || op == OpKind::kHardSigmoid ||
         op == OpKind::kHardSwish;
}

Expr DefineUnary(const OpContext& op, const Expr& x) {
  if (IsFormula(op.node->op) && x->dtype.IsFloat() && x->dtype.bits < 32) {
    return CastExpr::Make(x->dtype, DefineUnary(op, CastExpr::Make(DType::Float(32), x)));
  }
  switch (op.node->op) {
    case OpKind::kRelu: return Select::Make(Lt(x, Const(x, 0)), Const(x, 0), x);
    case OpKind::kSigmoid: return Intrin(Intrinsic::kSigmoid, x);
    case OpKind::kTanh: return Intrin(Intrinsic::kTanh, x);
    case OpKind::kExp: return Intrin(Intrinsic::kExp, x);
    case OpKind::kLog: return Intrin(Intrinsic::kLog, x);
    case OpKind::kSqrt: return Intrin(Intrinsic::kSqrt, x);
    case OpKind::kSin: return Intrin(Intrinsic::kSin, x);
    case OpKind::kCos: return Intrin(Intrinsic::kCos, x);
    case OpKind::kTan: return Intrin(Intrinsic::kTan, x);
    case OpKind::kAsin: return Intrin(Intrinsic::kAsin, x);
    case OpKind::kAcos: return Intrin(Intrinsic::kAcos, x);
    case OpKind::kAtan: return Intrin(Intrinsic::kAtan, x);
    case OpKind::kSinh: return Intrin(Intrinsic::kSinh, x);
    case OpKind::kCosh: return Intrin(Intrinsic::kCosh, x);
    case OpKind::kAsinh: return Intrin(Intrinsic::kAsinh, x);
    case OpKind::kAcosh: return Intrin(Intrinsic::kAcosh, x);
    case OpKind::kAtanh: return Intrin(Intrinsic::kAtanh, x);
    case OpKind::kErf: return Intrin(Intrinsic::kErf, x);
    case OpKind::kFloor: return Intrin(Intrinsic::kFloor, x);
    case OpKind::kCeil: return Intrin(Intrinsic::kCeil, x);
    case OpKind::kRound: return Intrin(Intrinsic::kRoundEven, x);
    case OpKind::kNeg: return -x;
    case OpKind::kAbs: return x->dtype.code == TypeCode::kUInt ? x : Intrin(Intrinsic::kAbs, x);
    case OpKind::kSign: return Sign(x);
    case OpKind::kReciprocal: return Const(x, 1) / x;
    case OpKind::kSoftplus: return Softplus(x);
    case OpKind::kGelu: return Gelu(x, op.node->attrs.GetString("approximate") == "tanh");
    case OpKind::kHardSigmoid: {
      Expr line = x * Const(x, op.node->attrs.GetFloat("alpha")) +
                  Const(x, op.node->attrs.GetFloat("beta"));
      return ClipTo(line, Const(x, 0), Const(x, 1));
    }
    case OpKind::kHardSwish: {
      Expr line = x * Const(x, 1.0 / 6) + Const(x, 0.5);
      return x * ClipTo(line, Const(x, 0), Const(x, 1));
    }
    case OpKind::kClip:
      return ClipTo(x, Const(x, op.node->attrs.GetFloat("lo")),
                    Const(x, op.node->attrs.GetFloat("hi")));
    case OpKind::kIsNan: return IsNan(x);
    case OpKind::kIsInf: return IsInf(op, x);
    case OpKind::kNot: return Not(x);
    case OpKind::kBitNot: return Unary::Make(UnaryOp::kBitNot, x);
    case OpKind::kCast: return CastExpr::Make(op.out.dtype, x);
    case OpKind::kBitCast: return BitCast(op.out.dtype, x);
    default: break;  // not unary: the caller dispatched wrongly
  }
  TN_UNREACHABLE();
}

static Expr Power(const Expr& base, const Expr& exponent) {
  std::optional<double> known = AsFloat(exponent);
  if (auto whole = AsInt(exponent)) known = static_cast<double>(*whole);
  if (known) {
    if (*known == 1) return base;
    if (*known == 2) return base * base;
    if (*known == 3) return base * base * base;
    if (*known == -1 && base->dtype.IsFloat()) return Const(base, 1) / base;
  }
  return Call::Make(Intrinsic::kPow, {base, exponent});
}

// C's fmod, or with the divisor's sign. The quotient is taken in f64, so that its whole part is
// right for narrower types up to 2^29; one step beyond it, from rounding, is taken back.
static Expr FloatModulo(const Expr& narrow_a, const Expr& narrow_b, bool fmod) {
  const DType type = narrow_a->dtype, f64 = DType::Float(64);
  Expr a = CastExpr::Make(f64, narrow_a), b = CastExpr::Make(f64, narrow_b);
  Expr zero = MakeConst(f64, 0), size = Intrin(Intrinsic::kAbs, b);
  Expr magnitude = Intrin(Intrinsic::kAbs, a);
  Expr rest = magnitude - Intrin(Intrinsic::kTrunc, magnitude / size) * size;
  rest = Select::Make(Lt(rest, zero), rest + size, rest);
  rest = Select::Make(Lt(magnitude, size), magnitude, rest);  // b may be infinite
  rest = Select::Make(Lt(a, zero), -rest, rest);
  if (fmod) return CastExpr::Make(type, Select::Make(Eq(rest, zero), a * zero, rest));
  Expr differ = Ne(Lt(rest, zero), Lt(b, zero));
  Expr signed_zero = Select::Make(Lt(b, zero), -zero, zero);
  return CastExpr::Make(
      type, Select::Make(Eq(rest, zero), signed_zero, Select::Make(differ, rest + b, rest)));
}

static Expr Modulo(const Expr& a, const Expr& b, bool fmod) {
  if (a->dtype.IsFloat()) return FloatModulo(a, b, fmod);
  Expr rest = a % b;  // the dividend's sign
  if (fmod || !a->dtype.IsSigned()) return rest;
  Expr zero = MakeIntConst(a->dtype, 0);
  Expr differ = Ne(Lt(rest, zero), Lt(b, zero));
  return Select::Make(And(Ne(rest, zero), differ), rest + b, rest);
}

Expr DefineBinary(const OpContext& op, const Expr& a, const Expr& b) {
  switch (op.node->op) {
    case OpKind::kAdd: return a + b;
    case OpKind::kSub: return a - b;
    case OpKind::kMul: return a * b;
    case OpKind::kDiv: return a / b;
    case OpKind::kPow: return Power(a, b);
    case OpKind::kMod: return Modulo(a, b, op.node->attrs.Get<bool>("fmod", false));
    case OpKind::kMin: return NanMin(a, b);
    case OpKind::kMax: return NanMax(a, b);
    case OpKind::kAnd: return And(a, b);
    case OpKind::kOr: return Or(a, b);
    case OpKind::kXor: return Ne(a, b);
    case OpKind::kBitAnd: return Binary::Make(BinaryOp::kBitAnd, a, b);
    case OpKind::kBitOr: return Binary::Make(BinaryOp::kBitOr, a, b);
    case OpKind::kBitXor: return Binary::Make(BinaryOp::kBitXor, a, b);
    case OpKind::kShl: return Binary::Make(BinaryOp::kShl, a, b);
    case OpKind::kShr: return Binary::Make(BinaryOp::kShr, a, b);
    case OpKind::kEqual: return Eq(a, b);
    case OpKind::kLess: return Lt(a, b);
    case OpKind::kGreater: return Gt(a, b);
    case OpKind::kLessEqual: return Le(a, b);
    case OpKind::kGreaterEqual: return Ge(a, b);
    default: break;  // not binary: the caller dispatched wrongly
  }
  TN_UNREACHABLE();
}

}  // namespace tenon::ops
