#include "loop/pass/math/expand_float8.h"

#include <cmath>
#include <limits>

#include "loop/pass/math/forms.h"
#include "loop/rewrite.h"

namespace tenon {

namespace {

using Special = Minifloat::Special;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

DType Like(DType type, DType lanes) { return type.WithLanes(lanes.lanes, lanes.scalable); }
DType BytesOf(DType float8) { return Like(DType::UInt(8), float8); }

Expr Bytes(const Expr& x) {
  const auto* call = As<Call>(x);
  if (call && call->intrinsic == Intrinsic::kReinterpret &&
      call->args[0]->dtype == BytesOf(x->dtype))
    return call->args[0];
  return Call::Make(Intrinsic::kReinterpret, {x}, BytesOf(x->dtype));
}

// Exponents alone: f32's own field, but for the smallest, which f32 has as a denormal number.
Expr WidenedExponent(const math::Builder& b, const Expr& code) {
  const Expr power = Select::Make(Eq(code, MakeIntConst(code->dtype, 0)), b.C(0x1p-127),
                                  b.FromBits(Binary::Make(BinaryOp::kShl, code, b.I(23))));
  return Select::Make(Eq(code, MakeIntConst(code->dtype, 255)), b.C(kNan), power);
}

Expr Widened(const Expr& x) {
  const DType wide = Like(DType::Float(32), x->dtype);
  if (const auto* c = As<FloatConst>(x)) return MakeConst(wide, c->value);
  const Minifloat& format = FormatOf(x->dtype.float8);
  const math::Builder b(wide, false);
  const auto shift = [&](BinaryOp op, const Expr& v, int by) {
    return Binary::Make(op, v, b.I(by));
  };
  const Expr code = CastExpr::Make(b.IntType(), Bytes(x));
  if (format.IsExponent()) return WidenedExponent(b, code);
  const Expr magnitude = Binary::Make(BinaryOp::kBitAnd, code, b.I(0x7f));
  const Expr field = shift(BinaryOp::kShr, magnitude, format.mantissa);
  const Expr fraction = Binary::Make(BinaryOp::kBitAnd, code, b.I((1 << format.mantissa) - 1));
  const Expr is_normal = Gt(field, b.I(0));
  const Expr digits = Select::Make(
      is_normal, Binary::Make(BinaryOp::kBitOr, fraction, b.I(1 << format.mantissa)), fraction);
  const Expr power =
      Select::Make(is_normal, field, b.I(1)) + b.I(127 - format.bias - format.mantissa);
  Expr number = CastExpr::Make(wide, digits) * b.FromBits(shift(BinaryOp::kShl, power, 23));
  const Expr largest = b.I(format.LargestCode());
  if (format.special == Special::kInfinity) {
    number = Select::Make(Gt(magnitude, largest), b.C(kInfinity), number);
    number = Select::Make(Gt(magnitude, b.I(format.LargestCode() + 1)), b.C(kNan), number);
  }
  if (format.special == Special::kFinite)
    number = Select::Make(Gt(magnitude, largest), b.C(kNan), number);
  const Expr sign = shift(BinaryOp::kShl, shift(BinaryOp::kShr, code, 7), 31);
  number = b.FromBits(Binary::Make(BinaryOp::kBitOr, b.Bits(number), sign));
  if (format.special != Special::kZero) return number;
  return Select::Make(Eq(code, b.I(format.NanCode())), b.C(kNan), number);
}

// Ties go up; what is smaller than halfway to the second smallest becomes the smallest.
Expr NarrowedExponent(const math::Builder& b, const Minifloat& format, const Expr& x) {
  const Expr half = b.I(int64_t{1} << (b.mantissa_bits() - 1));
  const Expr field = Binary::Make(BinaryOp::kShr, b.Bits(x) + half, b.I(b.mantissa_bits())) -
                     b.I(b.exponent_bias() - format.bias);
  const Expr code = Select::Make(Lt(x, b.C(0x1.8p-127)), b.I(0), field);
  const Expr is_number = Binary::Make(BinaryOp::kAnd, Gt(x, b.C(0)), Lt(x, b.C(0x1.8p127)));
  return Select::Make(is_number, code, b.I(format.NanCode()));
}

// The code of a float of 32 or 64 bits.
Expr NarrowedCode(const math::Builder& b, const Minifloat& format, const Expr& x) {
  if (format.IsExponent()) return NarrowedExponent(b, format, x);
  const int drops = b.mantissa_bits() - format.mantissa;
  const auto shift_right = [&](const Expr& v, int by) {
    return Binary::Make(BinaryOp::kShr, v, b.I(by));
  };
  const Expr size = b.Abs(x), bits = b.Bits(size);
  const Expr last = Binary::Make(BinaryOp::kBitAnd, shift_right(bits, drops), b.I(1));
  const Expr rounded = shift_right(bits + last + b.I((int64_t{1} << (drops - 1)) - 1), drops);
  const Expr normal =
      rounded - b.I(static_cast<int64_t>(b.exponent_bias() - format.bias) << format.mantissa);
  // In steps of the smallest number; a carry gives the smallest normal one.
  const double least_normal = std::ldexp(1.0, 1 - format.bias);
  const Expr steps = b.RoundEven(b.AtMost(size, least_normal) *
                                 b.C(std::ldexp(1.0, format.mantissa + format.bias - 1)));
  const Expr tiny = Lt(size, b.C(least_normal));
  Expr code = Select::Make(tiny, CastExpr::Make(b.IntType(), steps), normal);
  const Expr is_large = Gt(code, b.I(format.LargestCode()));
  const Expr sign =
      Binary::Make(BinaryOp::kBitAnd, shift_right(b.Bits(x), b.type().bits - 8), b.I(0x80));
  const Expr is_nan = Call::Make(Intrinsic::kIsNan, {x});
  if (format.special == Special::kZero) {
    const Expr is_zero = Eq(code, b.I(0));
    code = Select::Make(is_zero, code, Binary::Make(BinaryOp::kBitOr, code, sign));
    return Select::Make(Binary::Make(BinaryOp::kOr, is_large, is_nan), b.I(format.NanCode()), code);
  }
  code = Select::Make(is_large, b.I(format.LargestCode() + 1), code);
  code = Select::Make(is_nan, b.I(format.NanCode()), code);
  return Binary::Make(BinaryOp::kBitOr, code, sign);
}

Expr Narrowed(const Expr& x, DType to) {
  const DType from = x->dtype;
  if (!from.IsFloat() || from.bits < 32) {  // f32 has them, or f64 what is no overflow
    const DType wide = DType::Float(from.IsFloat() || from.IsBool() || from.bits <= 16 ? 32 : 64);
    return Narrowed(CastExpr::Make(Like(wide, from), x), to);
  }
  const Expr code = NarrowedCode(math::Builder(from, false), FormatOf(to.float8), x);
  return Call::Make(Intrinsic::kReinterpret, {CastExpr::Make(BytesOf(to), code)}, to);
}

bool IsArithmetic(Intrinsic intrinsic) {
  switch (intrinsic) {
    case Intrinsic::kReduceAdd:
    case Intrinsic::kReduceMax:
    case Intrinsic::kReduceMin:
    case Intrinsic::kIsNan:
    case Intrinsic::kIsInf: return true;
    default: return Info(intrinsic).type == IntrinsicType::kSame;  // NOLINT: functions of floats
  }
}

// Null where the node stays as it is.
Expr Expanded(const NodeRef& node) {
  if (const auto* n = As<Unary>(node)) {
    return n->dtype.IsFloat8() ? Narrowed(Unary::Make(n->op, Widened(n->value)), n->dtype)
                               : nullptr;
  }
  if (const auto* n = As<Binary>(node)) {
    if (!n->lhs->dtype.IsFloat8()) return nullptr;
    const Expr wide = Binary::Make(n->op, Widened(n->lhs), Widened(n->rhs));
    return n->dtype.IsFloat8() ? Narrowed(wide, n->dtype) : wide;
  }
  if (const auto* n = As<CastExpr>(node)) {
    const bool from = n->value->dtype.IsFloat8(), to = n->dtype.IsFloat8();
    if (!from && !to) return nullptr;
    const Expr wide = from ? Widened(n->value) : n->value;
    return to ? Narrowed(wide, n->dtype) : CastExpr::Make(n->dtype, wide);
  }
  const auto* n = As<Call>(node);
  if (!n || n->args.empty() || !n->args[0]->dtype.IsFloat8() || !IsArithmetic(n->intrinsic))
    return nullptr;
  std::vector<Expr> args;
  for (const Expr& a : n->args) args.push_back(Widened(a));
  const bool is_float = n->dtype.IsFloat8();
  const DType type = is_float ? Like(DType::Float(32), n->dtype) : n->dtype;
  const Expr wide = Call::Make(n->intrinsic, std::move(args), type);
  return is_float ? Narrowed(wide, n->dtype) : wide;
}

}  // namespace

Module ExpandFloat8(const Module& module, const PassContext&) {
  return MapFuncs(module, [&](const Func& func) {
    return WithBody(func, PostOrderRewrite(func->body, [&](const NodeRef& n) -> NodeRef {
                      const Expr expanded = Expanded(n);
                      return expanded ? NodeRef(expanded) : n;
                    }));
  });
}

}  // namespace tenon
