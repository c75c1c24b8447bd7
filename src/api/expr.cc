// Expressions: conversion of operands, and the operators.
//
// A public expression holds one of loop IR and what loop IR does not have: that it is a plain
// number, which takes the type of what it meets; which loops occur in it, so that a use outside of
// them is told where it is made; how deep it is nested, since walks recurse. Two operands meet in a
// common type before the operator is applied, so loop IR never sees two types. Of an int32 tensor A
//
//   A[i] * 2 + 1.5
//
// 2 becomes an int32, the product meets a float literal and becomes a float32, and 1.5 is one:
//
//   f32(A[vi] * 2i32) + 1.5f32
//
// What loop IR's makers would refuse is refused here, by an exception about what a person wrote.
#include <algorithm>

#include "api/bridge.h"

namespace tenon::inline v0 {

DType FromPublic(DataType dtype) {
  if (dtype.lanes != 1) ThrowType("expected a type of one lane");
  switch (dtype.code) {
    case TN_DL_INT: return DType::Int(dtype.bits);
    case TN_DL_UINT: return DType::UInt(dtype.bits);
    case TN_DL_FLOAT: return DType::Float(dtype.bits);
    case TN_DL_BFLOAT: return DType::BFloat16();
    case TN_DL_BOOL: return DType::Bool();
    default:
      if (dtype.bits == 8 && dtype.code >= static_cast<uint8_t>(Float8::kE3M4) &&
          dtype.code <= static_cast<uint8_t>(Float8::kE8M0Fnu))
        return DType::OfFloat8(static_cast<Float8>(dtype.code));
      ThrowType(fmt::format("tensors of DLPack's type code {} cannot be computed", dtype.code));
  }
}

DataType ToPublic(DType dtype) {
  auto bits = static_cast<uint8_t>(dtype.StorageBits());
  switch (dtype.code) {
    case TypeCode::kInt:
    case TypeCode::kIndex: return {TN_DL_INT, bits};
    case TypeCode::kUInt: return {TN_DL_UINT, bits};
    case TypeCode::kFloat: return {TN_DL_FLOAT, bits};
    case TypeCode::kBFloat: return {TN_DL_BFLOAT, bits};
    case TypeCode::kFloat8: return {static_cast<uint8_t>(dtype.float8), bits};
    case TypeCode::kBool: return {TN_DL_BOOL, bits};
    case TypeCode::kHandle:
    case TypeCode::kString: break;
  }
  return {TN_DL_HANDLE, bits};
}

DataType ParseDataType(std::string_view name) {
  std::optional<DType> dtype = ParseLongName(name);
  if (!dtype || dtype->IsHandle() || dtype->IsIndex()) {
    ThrowValue(
        fmt::format("there is no type '{}'; expected a name such as float32, int8 or bool", name));
  }
  return ToPublic(*dtype);
}

std::string ToString(DataType dtype) { return LongName(FromPublic(dtype)); }

namespace te {

namespace {

Expr Make(ExprData data) { return Expr(std::make_shared<const ExprData>(std::move(data))); }

Expr Literal(int64_t value) {
  ExprData data;
  data.expr = IndexConst(value);
  data.literal = true;
  data.number = static_cast<double>(value);
  return Make(std::move(data));
}

bool IsFloatLiteral(const ExprData& e) { return e.literal && e.expr->dtype.IsFloat(); }

}  // namespace

// An integer literal fits everything; a float literal makes floats of integers, as f32. A size or
// loop variable takes the type of data that it meets.
DType CommonType(const ExprData& a, const ExprData& b) {
  const DType x = a.expr->dtype, y = b.expr->dtype;
  if (a.literal && b.literal) return x.IsFloat() ? x : y;
  if (a.literal) return IsFloatLiteral(a) && !y.IsFloat() ? DType::Float(32) : y;
  if (b.literal) return IsFloatLiteral(b) && !x.IsFloat() ? DType::Float(32) : x;
  if (x == y) return x;
  if (x.IsHandle() || y.IsHandle()) ThrowType("a handle cannot be computed with");
  if (x.IsFloat() != y.IsFloat()) return x.IsFloat() ? x : y;
  if (x.IsFloat() && x.bits == y.bits) return DType::Float(32);  // neither has the other
  if (x.IsBool() || y.IsBool()) return x.IsBool() ? y : x;
  if (x.IsIndex() || y.IsIndex()) return x.IsIndex() ? y : x;
  if (x.IsSigned() == y.IsSigned()) return x.bits > y.bits ? x : y;
  // As NumPy: the narrowest type that has the values of both.
  const DType with_sign = x.IsSigned() ? x : y, without = x.IsSigned() ? y : x;
  if (with_sign.bits > without.bits) return with_sign;
  if (without.bits < 64) return DType::Int(2 * without.bits);
  ThrowType(fmt::format("{} and {} meet in no integer type; cast one of them (astype)", LongName(x),
                        LongName(y)));
}

inner::Expr Convert(const ExprData& e, DType type) {
  if (!e.literal) return CastExpr::Make(type, e.expr);
  if (type.IsFloat()) return FloatConst::Make(type, RoundToType(type, e.number));
  if (type.IsBool()) return BoolConst(e.number != 0);
  if (e.expr->dtype.IsFloat()) {
    ThrowType(fmt::format("{} is no value of type {}", e.number, LongName(type)));
  }
  const int64_t value = *AsInt(e.expr);
  // The bits of a mask are written without a sign, too: 0xff of int8.
  const int64_t most = int64_t{1} << std::min<int>(type.bits, 62);
  if (type.IsInt() && type.bits < 63 && (value >= most || value < -most / 2)) {
    ThrowValue(fmt::format("{} is no value of type {}", value, LongName(type)));
  }
  return IntConst::Make(type, value);
}

void RequireScalarValue(const ExprData& e) {
  if (e.reduce) ThrowValue("a reduction must be the whole body of a compute, not an operand");
}

namespace {

struct Operands {
  inner::Expr a, b;
  bool literals;  // both were
};

// A cast of a number may wrap; a number beside data is meant as it is written.
void RequireFits(const ExprData& e, DType type) {
  if (!e.literal || type.code != TypeCode::kUInt || e.expr->dtype.IsFloat()) return;
  if (*AsInt(e.expr) < 0) {
    ThrowValue(
        fmt::format("{} is no value of type {}; cast the other operand to a type with a sign",
                    *AsInt(e.expr), LongName(type)));
  }
}

Operands Meet(const Expr& a, const Expr& b) {
  RequireScalarValue(a.data());
  RequireScalarValue(b.data());
  DType type = CommonType(a.data(), b.data());
  RequireFits(a.data(), type);
  RequireFits(b.data(), type);
  return {Convert(a.data(), type), Convert(b.data(), type), a.data().literal && b.data().literal};
}

Expr Compare(BinaryOp op, const Expr& a, const Expr& b) {
  Operands o = Meet(a, b);
  return Wrap(Binary::Make(op, o.a, o.b), {&a, &b});
}

inner::Expr CombineBools(BinaryOp op, const inner::Expr& a, const inner::Expr& b) {
  switch (op) {
    case BinaryOp::kBitAnd: return And(a, b);
    case BinaryOp::kBitOr: return Or(a, b);
    case BinaryOp::kBitXor: return Ne(a, b);
    default: ThrowType("a bool is no number; cast it");
  }
}

Expr Combine(BinaryOp op, const Expr& a, const Expr& b) {
  Operands o = Meet(a, b);
  const DType type = o.a->dtype;
  if (type.IsBool()) return Wrap(CombineBools(op, o.a, o.b), {&a, &b});
  bool is_bits = op == BinaryOp::kBitAnd || op == BinaryOp::kBitOr || op == BinaryOp::kBitXor ||
                 op == BinaryOp::kShl || op == BinaryOp::kShr;
  if (is_bits && !type.IsInt()) {
    ThrowType(fmt::format("bits of {} cannot be combined; cast to an integer type",
                          type.IsIndex() ? "a size or loop variable" : LongName(type)));
  }
  if (o.literals && type.IsIndex()) {
    if ((op == BinaryOp::kDiv || op == BinaryOp::kMod) && IsZero(o.b)) {
      ThrowValue("division of a constant by zero");
    }
  }
  return Wrap(Binary::Make(op, o.a, o.b), {&a, &b});
}

inner::Expr AsBool(const Expr& e) {
  RequireScalarValue(e.data());
  return CastExpr::Make(DType::Bool(), e.data().expr);
}

}  // namespace

Expr::Expr(int value) : Expr(static_cast<long long>(value)) {}
Expr::Expr(long value) : Expr(static_cast<long long>(value)) {}
Expr::Expr(long long value) : Expr(Literal(value)) {}
Expr::Expr(double value) {
  ExprData data;
  data.expr = FloatConst::Make(DType::Float(32), RoundToType(DType::Float(32), value));
  data.literal = true;
  data.number = value;
  data_ = std::make_shared<const ExprData>(std::move(data));
}

const ExprData& Expr::data() const {
  if (!data_) ThrowValue("the expression is empty");
  if (!data_->expr && !data_->loop.empty()) {
    ThrowValue(fmt::format("'{}' is a loop that a schedule made: it has no value in expressions",
                           data_->loop));
  }
  return *data_;
}
DataType Expr::dtype() const { return ToPublic(data().expr->dtype); }
std::string Expr::str() const {
  const ExprData& e = data();
  if (!e.reduce) return inner::Text(e.expr);
  std::string axes;
  for (const IterVar& a : e.reduce->axes) axes += ", " + a.name();
  return fmt::format("reduce({}, {}{})", Info(e.reduce->combiner).text, inner::Text(e.expr), axes);
}

Var::Var(const std::string& name, int64_t lo, int64_t hi, int64_t step) {
  if (lo < 0 || step < 1 || (hi >= 0 && hi < lo)) {
    ThrowValue(
        fmt::format("size '{}': expected 0 <= lo <= hi and step >= 1 but got lo {}, hi {}, step {}",
                    name, lo, hi, step));
  }
  ExprData data;
  data.expr = VarNode::Make(name);
  data.range = {lo, hi, step};
  data_ = std::make_shared<const ExprData>(std::move(data));
}
Var::Var(const std::string& name, DataType dtype) {
  ExprData data;
  data.expr = VarNode::Make(name, FromPublic(dtype));
  data_ = std::make_shared<const ExprData>(std::move(data));
}
std::string Var::name() const {
  const auto* var = As<VarNode>(data().expr);
  return var ? var->name : str();
}

IterVar::IterVar(std::shared_ptr<const IterVarData> data) : node_(std::move(data)) {
  ExprData value;
  if (!node_->var) {
    value.loop = node_->name;
    data_ = std::make_shared<const ExprData>(std::move(value));
    return;
  }
  value.expr = node_->min ? node_->var + node_->min : inner::Expr(node_->var);
  value.loops = std::make_shared<const Loops>(Loops{node_});
  data_ = std::make_shared<const ExprData>(std::move(value));
}
std::string IterVar::name() const { return node_ ? node_->name : ""; }
Expr IterVar::extent() const { return node_ && node_->extent ? Wrap(node_->extent) : Expr(); }

Expr Wrap(inner::Expr expr) {
  ExprData data;
  data.expr = std::move(expr);
  return Make(std::move(data));
}

// Mostly one operand's are all, which is then shared.
static std::shared_ptr<const Loops> Union(const std::shared_ptr<const Loops>& a,
                                          const std::shared_ptr<const Loops>& b) {
  if (!b || a == b) return a;
  if (!a) return b;
  Loops more;
  for (const auto& loop : *b) {
    if (std::find(a->begin(), a->end(), loop) == a->end()) more.push_back(loop);
  }
  if (more.empty()) return a;
  more.insert(more.begin(), a->begin(), a->end());
  return std::make_shared<const Loops>(std::move(more));
}

namespace {

/// What a value has of its operands.
class Nested {
 public:
  void Add(const Expr& operand) {
    depth_ = std::max(depth_, operand.data().depth);
    loops_ = Union(loops_, operand.data().loops);
  }
  Expr Wrap(inner::Expr expr) && {
    constexpr int kMaxDepth = 500;
    if (depth_ >= kMaxDepth) {
      ThrowValue(
          fmt::format("an expression is nested more than {} deep; compute parts of it in "
                      "tensors of their own",
                      kMaxDepth));
    }
    ExprData data;
    data.expr = std::move(expr);
    data.depth = depth_ + 1;
    data.loops = std::move(loops_);
    return Make(std::move(data));
  }

 private:
  int depth_ = 0;
  std::shared_ptr<const Loops> loops_;
};

}  // namespace

Expr Wrap(inner::Expr expr, std::initializer_list<const Expr*> operands) {
  Nested nested;
  for (const Expr* e : operands) nested.Add(*e);
  return std::move(nested).Wrap(std::move(expr));
}
Expr Wrap(inner::Expr expr, const std::vector<Expr>& operands) {
  Nested nested;
  for (const Expr& e : operands) nested.Add(e);
  return std::move(nested).Wrap(std::move(expr));
}
const inner::Expr& Unwrap(const Expr& expr) {
  RequireScalarValue(expr.data());
  return expr.data().expr;
}
inner::Expr AsIndex(const Expr& expr) {
  const inner::Expr& e = Unwrap(expr);
  if (!e->dtype.IsInt() && !e->dtype.IsIndex()) {
    ThrowType(fmt::format("expected an integer where '{}' is {}", expr.str(), LongName(e->dtype)));
  }
  return CastExpr::Make(DType::Index(), e);
}

Expr operator+(const Expr& a, const Expr& b) { return Combine(BinaryOp::kAdd, a, b); }
Expr operator-(const Expr& a, const Expr& b) { return Combine(BinaryOp::kSub, a, b); }
Expr operator*(const Expr& a, const Expr& b) { return Combine(BinaryOp::kMul, a, b); }
Expr operator/(const Expr& a, const Expr& b) { return Combine(BinaryOp::kDiv, a, b); }
Expr operator%(const Expr& a, const Expr& b) { return Combine(BinaryOp::kMod, a, b); }
// Not 0 - a: the negative of 0 is -0.
Expr operator-(const Expr& a) {
  const bool negates = !a.data().literal && Unwrap(a)->dtype.IsFloat();
  return negates ? Wrap(Unary::Make(UnaryOp::kNeg, Unwrap(a)), {&a}) : Expr(0) - a;
}
Expr operator<(const Expr& a, const Expr& b) { return Compare(BinaryOp::kLt, a, b); }
Expr operator<=(const Expr& a, const Expr& b) { return Compare(BinaryOp::kLe, a, b); }
Expr operator>(const Expr& a, const Expr& b) { return Compare(BinaryOp::kGt, a, b); }
Expr operator>=(const Expr& a, const Expr& b) { return Compare(BinaryOp::kGe, a, b); }
Expr Equal(const Expr& a, const Expr& b) { return Compare(BinaryOp::kEq, a, b); }
Expr NotEqual(const Expr& a, const Expr& b) { return Compare(BinaryOp::kNe, a, b); }
Expr operator&&(const Expr& a, const Expr& b) { return Wrap(And(AsBool(a), AsBool(b)), {&a, &b}); }
Expr operator||(const Expr& a, const Expr& b) { return Wrap(Or(AsBool(a), AsBool(b)), {&a, &b}); }
Expr operator!(const Expr& a) { return Wrap(Not(AsBool(a)), {&a}); }
Expr operator&(const Expr& a, const Expr& b) { return Combine(BinaryOp::kBitAnd, a, b); }
Expr operator|(const Expr& a, const Expr& b) { return Combine(BinaryOp::kBitOr, a, b); }
Expr operator^(const Expr& a, const Expr& b) { return Combine(BinaryOp::kBitXor, a, b); }
Expr operator<<(const Expr& a, const Expr& b) { return Combine(BinaryOp::kShl, a, b); }
Expr operator>>(const Expr& a, const Expr& b) { return Combine(BinaryOp::kShr, a, b); }
Expr operator~(const Expr& a) {
  if (!Unwrap(a)->dtype.IsInt()) ThrowType("only integer data has bits to invert");
  return Wrap(Unary::Make(UnaryOp::kBitNot, Unwrap(a)), {&a});
}
Expr Minimum(const Expr& a, const Expr& b) { return Combine(BinaryOp::kMin, a, b); }
Expr Maximum(const Expr& a, const Expr& b) { return Combine(BinaryOp::kMax, a, b); }

Expr Select(const Expr& condition, const Expr& on_true, const Expr& on_false) {
  Operands o = Meet(on_true, on_false);
  return Wrap(inner::Select::Make(AsBool(condition), o.a, o.b), {&condition, &on_true, &on_false});
}
Expr Cast(const Expr& value, DataType dtype) {
  RequireScalarValue(value.data());
  return Wrap(Convert(value.data(), FromPublic(dtype)), {&value});
}
Expr Constant(double value, DataType dtype) { return Cast(Expr(value), dtype); }
Expr ConstantInt(int64_t value, DataType dtype) {
  return Cast(Expr(static_cast<long long>(value)), dtype);
}
Expr Reinterpret(const Expr& value, DataType dtype) {
  const inner::Expr& e = Unwrap(value);
  DType type = FromPublic(dtype);
  if (e->dtype.StorageBits() != type.StorageBits() || e->dtype.IsBool() || type.IsBool()) {
    ThrowType(fmt::format("{} and {} differ in width", LongName(e->dtype), LongName(type)));
  }
  return Wrap(Call::Make(Intrinsic::kReinterpret, {e}, type), {&value});
}

}  // namespace te
}  // namespace tenon::inline v0
