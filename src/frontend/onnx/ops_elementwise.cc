// Elementwise operators. What the graph has no operator for is spelled out: fusion makes the parts
// one kernel again.
//
// So Elu, Selu, Celu, Mish and their like are written as their formulas are (formula.h). LeakyRelu
// is
//
//   %1: f32[4] = less(%0, %zero)
//   %2: f32[4] = mul(%0, %slope)
//   %3: f32[4] = where(%1, %2, %0)
//
// and costs nothing for being three nodes: a group of elementwise operators is one kernel. Where
// types differ (Pow of an integer by a float, Clip with absent bounds, Cast) the specification's
// rule is followed, and what it leaves to the implementation is refused.

#include <cmath>
#include <limits>

#include "frontend/onnx/narrow.h"
#include "frontend/onnx/ops.h"

namespace tenon::onnx {
namespace {

Status ImportUnary(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  return c.Result(c.row.op, {c.In(0)});
}

// Of an integer what is left of the digits is cut off.
Status ImportErf(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  const DType type = c.Type(0).dtype;
  if (!type.IsInt()) return ImportUnary(c);
  const Formula f(c);
  return f.Result(Cast(Apply(OpKind::kErf, Cast(f.In(0), DType::Float(32))), type));
}

// Rounding an integer changes nothing, and the graph's operators take floats only.
Status ImportRounding(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  if (c.Type(0).dtype.IsInt()) return c.SetOutput(0, c.In(0));
  return c.Result(c.row.op, {c.In(0)});
}

// The second operand of two. Until opset 6 it has the first one's shape or, with `broadcast`, is
// some of its axes that lie side by side: the last ones, or those from `axis` on. Ones behind these
// say the same since then.
Expected<ValueId> SecondOperand(OpContext& c) {
  if (c.opset >= 7) return c.In(1);
  TN_ASSIGN_OR_RETURN(const bool broadcast, c.Bool("broadcast", false));
  std::vector<Expr> dims = c.Dims(1);
  const auto whole = c.Dims(0);
  int64_t axis = static_cast<int64_t>(whole.size()) - static_cast<int64_t>(dims.size());
  if (c.HasAttr("axis")) {
    TN_ASSIGN_OR_RETURN(axis, c.AxisAttr("axis", axis, c.Rank(0), true));
  }
  const bool one = graph::StaticCount(dims) == 1;
  bool fits = one || (axis >= 0 && static_cast<size_t>(axis) + dims.size() <= whole.size() &&
                      (broadcast || dims.size() == whole.size()));
  for (size_t i = 0; fits && !one && i < dims.size(); ++i)
    fits = IsOne(dims[i]) || !graph::ProveDifferent(dims[i], whole[static_cast<size_t>(axis) + i]);
  if (!fits) {
    return c.Error("expected a second operand that is {} of {}, but got {}",
                   broadcast ? "some axes" : "of the shape", c.Type(0).ToString(),
                   c.Type(1).ToString());
  }
  if (one)
    dims.clear();
  else
    dims.resize(whole.size() - static_cast<size_t>(axis), IndexConst(1));
  return c.Reshape(c.In(1), std::move(dims));
}

Status ImportBinary(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 2));
  TN_ASSIGN_OR_RETURN(const ValueId second, SecondOperand(c));
  return c.Result(c.row.op, {c.In(0), second});
}

Status ImportVariadic(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, -1));
  ValueId v = c.In(0);
  for (size_t i = 1; i < c.num_inputs(); ++i) {
    TN_ASSIGN_OR_RETURN(v, c.Emit(c.row.op, {v, c.In(i)}));
  }
  return c.SetOutput(0, v);
}

// Of all inputs, in the type that sums are taken in.
Val SumOfInputs(const Formula& f, size_t count) {
  Val sum = Widened(f.In(0));
  for (size_t i = 1; i < count; ++i) sum = sum + Widened(f.In(i));
  return sum;
}

Status ImportSum(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, -1));
  const Formula f(c);
  return f.Result(Cast(SumOfInputs(f, c.num_inputs()), c.Type(0).dtype));
}

Status ImportMean(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, -1));
  const Formula f(c);
  const Val mean = SumOfInputs(f, c.num_inputs()) / static_cast<double>(c.num_inputs());
  return f.Result(Cast(mean, c.Type(0).dtype));
}

Status ImportPow(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 2));
  const DType base = c.Type(0).dtype, exponent = c.Type(1).dtype;
  // The result has the base's type; an integer base with a float exponent is computed in floats.
  const DType type = base.IsInt() && exponent.IsFloat() ? exponent : base;
  const Attrs to = {{"to", type.ToString()}};
  TN_ASSIGN_OR_RETURN(ValueId x, c.Emit(OpKind::kCast, {c.In(0)}, to));
  TN_ASSIGN_OR_RETURN(const ValueId second, SecondOperand(c));
  TN_ASSIGN_OR_RETURN(ValueId y, c.Emit(OpKind::kCast, {second}, to));
  TN_ASSIGN_OR_RETURN(ValueId power, c.Emit(OpKind::kPow, {x, y}));
  return c.Result(OpKind::kCast, {power}, {{"to", base.ToString()}});
}

Status ImportMod(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 2));
  TN_ASSIGN_OR_RETURN(bool fmod, c.Bool("fmod", false));
  if (!fmod && c.Type(0).dtype.IsFloat() && c.opset < 28)
    return c.Error("expected fmod 1 for {} inputs, but got 0", c.Type(0).dtype.ToString());
  return c.Result(OpKind::kMod, {c.In(0), c.In(1)}, {{"fmod", fmod}});
}

Status ImportBitShift(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 2));
  TN_ASSIGN_OR_RETURN(std::string direction, c.String("direction", ""));
  if (direction != "LEFT" && direction != "RIGHT") {
    return c.Error("expected direction LEFT or RIGHT, but got {}", graph::Quoted(direction));
  }
  return c.Result(direction == "LEFT" ? OpKind::kShl : OpKind::kShr, {c.In(0), c.In(1)});
}

Status ImportWhere(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(3, 3));
  return c.Result(OpKind::kWhere, {c.In(0), c.In(1), c.In(2)});
}

// A cast to a type of the graph, or to a narrow one.
Status CastTo(OpContext& c, DType to, const NarrowType* narrow) {
  NarrowRounding rounding;
  TN_ASSIGN_OR_RETURN(rounding.saturate, c.Bool("saturate", true));
  TN_ASSIGN_OR_RETURN(rounding.mode, c.String("round_mode", "up"));
  if (rounding.mode != "up" && rounding.mode != "down" && rounding.mode != "nearest")
    return c.Error("expected round_mode up, down or nearest, but got {}",
                   graph::Quoted(rounding.mode));
  const NarrowType* from = c.Narrow(0);
  const Formula f(c);
  if (narrow && from == narrow) {
    TN_RETURN_IF_ERROR(c.SetOutput(0, c.In(0)));
  } else if (narrow) {
    const Val x = from ? Decoded(f.In(0), *from, DType::Float(32)) : f.In(0);
    TN_RETURN_IF_ERROR(f.Result(Encoded(x, *narrow, rounding)));
  } else {
    return f.Result(from ? Decoded(f.In(0), *from, to) : Cast(f.In(0), to));
  }
  c.SetNarrow(0, narrow);
  return Ok();
}

Status ImportCast(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(int64_t to, c.Int("to", std::nullopt));
  if (to < 0 || to > INT32_MAX) return c.Error("unknown data type {}", to);
  TN_ASSIGN_OR_RETURN(DType dtype, StorageOf(static_cast<int32_t>(to)));
  return CastTo(c, dtype, NarrowTypeOf(static_cast<int32_t>(to)));
}

Status ImportCastLike(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 2));
  return CastTo(c, c.Type(1).dtype, c.Narrow(1));
}

Status ImportBitCast(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(int64_t to, c.Int("to", std::nullopt));
  if (to < 0 || to > INT32_MAX) return c.Error("unknown data type {}", to);
  TN_ASSIGN_OR_RETURN(DType dtype, StorageOf(static_cast<int32_t>(to)));
  const NarrowType *from = c.Narrow(0), *narrow = NarrowTypeOf(static_cast<int32_t>(to));
  const int had = from ? from->bits : c.Type(0).dtype.StorageBits(),
            wants = narrow ? narrow->bits : dtype.StorageBits();
  if ((from && from->IsString()) || (narrow && narrow->IsString()) || had != wants)
    return c.Error("expected a type of as many bits as {}, but got {}",
                   from ? from->name : c.Type(0).dtype.ToString(),
                   narrow ? narrow->name : dtype.ToString());
  const Formula f(c);
  Val bits = f.Emit(OpKind::kBitCast, {f.In(0)}, {{"to", dtype.ToString()}});
  // Of bytes that hold fewer bits the others say nothing, and are those of a number of the type.
  if (wants < 8 && from != narrow)
    bits = narrow->is_float ? Mod(bits, 16) : Encoded(bits, *narrow, {});
  TN_RETURN_IF_ERROR(f.Result(bits));
  c.SetNarrow(0, narrow);
  return Ok();
}

// The first input, which may be narrow.
Val NumbersIn(OpContext& c, const Formula& f) {
  const NarrowType* narrow = c.Narrow(0);
  return narrow ? Decoded(f.In(0), *narrow, DType::Float(32)) : f.In(0);
}

Status ImportIsInf(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(bool negative, c.Bool("detect_negative", true));
  TN_ASSIGN_OR_RETURN(bool positive, c.Bool("detect_positive", true));
  const Formula f(c);
  return f.Result(
      f.Emit(OpKind::kIsInf, {NumbersIn(c, f)}, {{"negative", negative}, {"positive", positive}}));
}

Status ImportIsNan(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  const Formula f(c);
  return f.Result(Apply(OpKind::kIsNan, NumbersIn(c, f)));
}

Status ImportGelu(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(std::string approximate, c.String("approximate", "none"));
  return c.Result(OpKind::kGelu, {c.In(0)}, {{"approximate", approximate}});
}

Status ImportHardSigmoid(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(double alpha, c.Float("alpha", 0.2));
  TN_ASSIGN_OR_RETURN(double beta, c.Float("beta", 0.5));
  return c.Result(OpKind::kHardSigmoid, {c.In(0)}, {{"alpha", alpha}, {"beta", beta}});
}

Status ImportClip6(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  constexpr double kMost = std::numeric_limits<float>::max();
  TN_ASSIGN_OR_RETURN(double lo, c.Float("min", -kMost));
  TN_ASSIGN_OR_RETURN(double hi, c.Float("max", kMost));
  return c.Result(OpKind::kClip, {c.In(0)}, {{"lo", lo}, {"hi", hi}});
}

// A float bound that is a constant scalar, or the fallback where it is left out; nullopt where it
// is known at run time only.
std::optional<double> ConstantBound(const OpContext& c, size_t i, double fallback) {
  if (!c.Has(i)) return fallback;
  std::optional<std::vector<double>> v = graph::ReadFloats(c.b.graph().value(c.In(i)));
  if (!v || v->size() != 1) return std::nullopt;
  return (*v)[0];
}

Status ImportClip(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 3));
  for (size_t i = 1; i < 3; ++i) {
    TN_RETURN_IF_ERROR(c.FixOne(i));
    if (c.Has(i) && (graph::StaticCount(c.Dims(i)) != 1 || c.Rank(i) > 1)) {
      return c.Error("expected a scalar bound, but input {} is {}", graph::Quoted(c.node.inputs[i]),
                     c.Type(i).ToString());
    }
  }
  const std::optional<double> lo = ConstantBound(c, 1, -INFINITY),
                              hi = ConstantBound(c, 2, INFINITY);
  if (c.Type(0).dtype.IsFloat() && lo && hi && !std::isnan(*lo) && !std::isnan(*hi)) {
    return c.Result(OpKind::kClip, {c.In(0)}, {{"lo", *lo}, {"hi", *hi}});
  }
  ValueId v = c.In(0);
  for (size_t i = 1; i < 3; ++i) {
    if (!c.Has(i)) continue;
    TN_ASSIGN_OR_RETURN(ValueId bound, c.Reshape(c.In(i), {}));
    TN_ASSIGN_OR_RETURN(v, c.Emit(i == 1 ? OpKind::kMax : OpKind::kMin, {v, bound}));
  }
  return c.SetOutput(0, v);
}

Status ImportIdentity(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  return c.SetOutput(0, c.In(0));
}

// ---- Activations spelled out. ----

// where(x < 0, slope · x, x)
Status LeakyWith(const Formula& f, const Val& slope) {
  const Val x = f.In(0);
  const Val scaled = x * slope, negative = x < 0;
  return f.Result(Where(negative, scaled, x));
}

Status ImportLeakyRelu(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(double alpha, c.Float("alpha", 0.01));
  const Formula f(c);
  return LeakyWith(f, f.Number(c.Type(0).dtype, alpha));
}

Status ImportPRelu(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 2));
  const Formula f(c);
  const Val slope = f.In(1);
  // Until opset 6 there is one slope for each channel, or one.
  if (c.opset >= 7 || slope.rank() != 1 || c.Rank(0) < 2 || IsOne(slope.dim(0)))
    return LeakyWith(f, slope);
  Dims per_channel(static_cast<size_t>(c.Rank(0)) - 1, IndexConst(1));
  per_channel[0] = slope.dim(0);
  return LeakyWith(f, Reshape(slope, per_channel));
}

// gamma · where(x > 0, x, alpha · (exp(x / scale) - 1)), in floats that are not narrow.
Status Exponential(OpContext& c, double alpha, double gamma, double scale) {
  const Formula f(c);
  const Val x = Widened(f.In(0));
  const Val power = Exp(scale == 1 ? x : x / scale);
  const Val below = (power - 1) * alpha;
  const Val positive = x > 0;
  Val y = Where(positive, x, below);
  if (gamma != 1) y = y * gamma;
  return f.Result(Cast(y, c.Type(0).dtype));
}

Status ImportElu(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(double alpha, c.Float("alpha", 1));
  return Exponential(c, alpha, 1, 1);
}

Status ImportSelu(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(double alpha, c.Float("alpha", 1.67326319217681884765625));
  TN_ASSIGN_OR_RETURN(double gamma, c.Float("gamma", 1.05070102214813232421875));
  return Exponential(c, alpha, gamma, 1);
}

Status ImportCelu(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(double alpha, c.Float("alpha", 1));
  return Exponential(c, alpha, 1, alpha);
}

Status ImportThresholdedRelu(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(double alpha, c.Float("alpha", 1));
  const Formula f(c);
  const Val x = f.In(0);
  return f.Result(Where(x > alpha, x, 0));
}

Status ImportSoftsign(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  const Formula f(c);
  const Val x = f.In(0);
  return f.Result(x / (Abs(x) + 1));
}

// x · sigmoid(alpha · x)
Val Swish(const Val& x, double alpha) { return x * Sigmoid(alpha == 1 ? x : x * alpha); }

Status ImportSwish(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(double alpha, c.Float("alpha", 1));
  const Formula f(c);
  return f.Result(Swish(f.In(0), alpha));
}

Status ImportSwiGlu(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 2));
  TN_ASSIGN_OR_RETURN(double alpha, c.Float("alpha", 1));
  const Formula f(c);
  const Val gate = Swish(Widened(f.In(0)), alpha);
  return f.Result(Cast(gate * Widened(f.In(1)), c.Type(0).dtype));
}

Status ImportMish(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  const Formula f(c);
  const Val x = Widened(f.In(0));
  return f.Result(Cast(x * Tanh(Apply(OpKind::kSoftplus, x)), c.Type(0).dtype));
}

// x + bias below -lambd, x - bias above lambd, else 0. Integers are shrunk as floats.
Status ImportShrink(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(double bias, c.Float("bias", 0));
  TN_ASSIGN_OR_RETURN(double lambd, c.Float("lambd", 0.5));
  const Formula f(c);
  const DType type = c.Type(0).dtype;
  const Val x = type.IsInt() ? Cast(f.In(0), DType::Float(64)) : f.In(0);
  return f.Result(Cast(Where(x < -lambd, x + bias, Where(x > lambd, x - bias, 0)), type));
}

constexpr OpRow kRows[] = {
    {"Relu", 6, ImportUnary, OpKind::kRelu},
    {"Sigmoid", 6, ImportUnary, OpKind::kSigmoid},
    {"Tanh", 6, ImportUnary, OpKind::kTanh},
    {"Exp", 6, ImportUnary, OpKind::kExp},
    {"Log", 6, ImportUnary, OpKind::kLog},
    {"Sqrt", 6, ImportUnary, OpKind::kSqrt},
    {"Sin", 7, ImportUnary, OpKind::kSin},
    {"Cos", 7, ImportUnary, OpKind::kCos},
    {"Tan", 7, ImportUnary, OpKind::kTan},
    {"Asin", 7, ImportUnary, OpKind::kAsin},
    {"Acos", 7, ImportUnary, OpKind::kAcos},
    {"Atan", 7, ImportUnary, OpKind::kAtan},
    {"Sinh", 9, ImportUnary, OpKind::kSinh},
    {"Cosh", 9, ImportUnary, OpKind::kCosh},
    {"Asinh", 9, ImportUnary, OpKind::kAsinh},
    {"Acosh", 9, ImportUnary, OpKind::kAcosh},
    {"Atanh", 9, ImportUnary, OpKind::kAtanh},
    {"Erf", 9, ImportErf, OpKind::kErf},
    {"Floor", 6, ImportRounding, OpKind::kFloor},
    {"Ceil", 6, ImportRounding, OpKind::kCeil},
    {"Round", 11, ImportRounding, OpKind::kRound},
    {"Neg", 6, ImportUnary, OpKind::kNeg},
    {"Abs", 6, ImportUnary, OpKind::kAbs},
    {"Sign", 9, ImportUnary, OpKind::kSign},
    {"Reciprocal", 6, ImportUnary, OpKind::kReciprocal},
    {"Softplus", 1, ImportUnary, OpKind::kSoftplus},
    {"HardSwish", 14, ImportUnary, OpKind::kHardSwish},
    {"IsNaN", 9, ImportIsNan},
    {"Not", 1, ImportUnary, OpKind::kNot},
    {"BitwiseNot", 18, ImportUnary, OpKind::kBitNot},
    {"Add", 1, ImportBinary, OpKind::kAdd},
    {"Sub", 1, ImportBinary, OpKind::kSub},
    {"Mul", 1, ImportBinary, OpKind::kMul},
    {"Div", 1, ImportBinary, OpKind::kDiv},
    {"And", 1, ImportBinary, OpKind::kAnd},
    {"Or", 1, ImportBinary, OpKind::kOr},
    {"Xor", 1, ImportBinary, OpKind::kXor},
    {"BitwiseAnd", 18, ImportBinary, OpKind::kBitAnd},
    {"BitwiseOr", 18, ImportBinary, OpKind::kBitOr},
    {"BitwiseXor", 18, ImportBinary, OpKind::kBitXor},
    {"Equal", 1, ImportBinary, OpKind::kEqual},
    {"Less", 1, ImportBinary, OpKind::kLess},
    {"Greater", 1, ImportBinary, OpKind::kGreater},
    {"LessOrEqual", 12, ImportBinary, OpKind::kLessEqual},
    {"GreaterOrEqual", 12, ImportBinary, OpKind::kGreaterEqual},
    {"Min", 6, ImportVariadic, OpKind::kMin},
    {"Max", 6, ImportVariadic, OpKind::kMax},
    {"Sum", 6, ImportSum},
    {"Mean", 6, ImportMean},
    {"Pow", 1, ImportPow},
    {"Mod", 10, ImportMod},
    {"BitShift", 11, ImportBitShift},
    {"Where", 9, ImportWhere},
    {"Cast", 6, ImportCast, OpKind::kCast},
    {"CastLike", 15, ImportCastLike, OpKind::kCast},
    {"BitCast", 26, ImportBitCast},
    {"IsInf", 10, ImportIsInf},
    {"Gelu", 20, ImportGelu},
    {"HardSigmoid", 6, ImportHardSigmoid},
    {"Clip", 6, ImportClip6},
    {"Clip", 11, ImportClip},
    {"Identity", 1, ImportIdentity},
    {"LeakyRelu", 6, ImportLeakyRelu},
    {"PRelu", 6, ImportPRelu},
    {"Elu", 6, ImportElu},
    {"Selu", 6, ImportSelu},
    {"Celu", 12, ImportCelu},
    {"ThresholdedRelu", 10, ImportThresholdedRelu},
    {"Softsign", 1, ImportSoftsign},
    {"Swish", 24, ImportSwish},
    {"SwiGLU", 27, ImportSwiGlu},
    {"Mish", 18, ImportMish},
    {"Shrink", 9, ImportShrink},
};

}  // namespace

std::span<const OpRow> ElementwiseRows() { return kRows; }

}  // namespace tenon::onnx
