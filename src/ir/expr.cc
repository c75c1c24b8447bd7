// The makers of expressions, and operators to write them with.
//
// A maker checks what its node promises (types agree, lanes agree) and nothing else: it does not
// simplify, so that a text reads back as it was. What builds subscripts by hand writes a great many
// `* 1` and `+ 0`, so the operators in front of the makers (operator+, Min, And …) fold constants
// of index and neutral elements, and leave all else to the simplifier:
//
//   Expr(i) * 1 + 0          makes   i
//   IndexConst(3) * 4 + i    makes   12 + i
//   i + i                    makes   i + i, as written
//
// Integer constants are kept wrapped to their type, so that equal values are equal nodes.

#include "ir/expr.h"

#include <cmath>
#include <cstring>

#include "ir/buffer.h"
#include "ir/node_fields.h"
#include "support/check.h"

namespace tenon {

const IntrinsicInfo& Info(Intrinsic intrinsic) {
  static constexpr IntrinsicInfo kInfo[] = {
#define TN_INTRINSIC(name, text, arity, type, purity, doc) \
  {text, arity, IntrinsicType::type, Purity::purity},
#include "ir/intrinsics.def"
#undef TN_INTRINSIC
  };
  return kInfo[static_cast<size_t>(intrinsic)];
}

const BinaryInfo& Info(BinaryOp op) {
  static constexpr bool kSame = false, kBool = true;
  static constexpr BinaryInfo kInfo[] = {
#define TN_UNARY(name, text)
#define TN_BINARY(name, text, prec, result) {text, prec, result},
#include "ir/ops.def"
#undef TN_UNARY
#undef TN_BINARY
  };
  return kInfo[static_cast<size_t>(op)];
}

const char* Text(UnaryOp op) {
  switch (op) {
#define TN_UNARY(name, text) \
  case UnaryOp::k##name: return text;
#define TN_BINARY(name, text, prec, result)
#include "ir/ops.def"
#undef TN_UNARY
#undef TN_BINARY
  }
  return "?";
}

// Wraps a value to the width of an integer type.
static int64_t Wrap(DType type, int64_t value) {
  if (type.IsBool()) return value != 0;
  if (type.bits >= 64) return value;
  uint64_t mask = (uint64_t{1} << type.bits) - 1;
  uint64_t low = static_cast<uint64_t>(value) & mask;
  if (type.code == TypeCode::kInt && (low >> (type.bits - 1)) != 0) low |= ~mask;
  return static_cast<int64_t>(low);
}

static double RoundHalf(double value, int mantissa_bits, int min_exponent, double max_value) {
  if (!std::isfinite(value) || value == 0) return value;
  int exponent = 0;
  std::frexp(value, &exponent);
  exponent = std::max(exponent - 1, min_exponent);
  double unit = std::ldexp(1.0, exponent - mantissa_bits);
  double rounded = std::nearbyint(value / unit) * unit;
  if (std::fabs(rounded) > max_value) return std::copysign(INFINITY, value);
  return rounded;
}

double RoundToType(DType type, double value) {
  if (type.IsFloat8()) return FormatOf(type.float8).Round(value);
  if (type.code == TypeCode::kBFloat) return RoundHalf(value, 7, -126, 3.3895313892515355e38);
  if (type.bits == 16) return RoundHalf(value, 10, -14, 65504.0);
  if (type.bits == 32) return static_cast<double>(static_cast<float>(value));
  return value;
}

double GreatestOf(DType type) {
  const double infinity = RoundToType(type, INFINITY);
  if (!std::isnan(infinity)) return infinity;
  const Minifloat& format = FormatOf(type.float8);
  return format.NumberOf(format.LargestCode());
}

double LeastOf(DType type) {
  const bool positive = type.IsFloat8() && FormatOf(type.float8).IsExponent();
  return positive ? FormatOf(type.float8).NumberOf(0) : -GreatestOf(type);
}

Expr IntConst::Make(DType type, int64_t value) {
  TN_CHECK(type.IsScalar() && (type.IsInt() || type.IsIndex() || type.IsBool()));
  auto n = MakeRef<IntConst>();
  n->dtype = type;
  n->value = Wrap(type, value);
  return n;
}

Expr FloatConst::Make(DType type, double value) {
  TN_CHECK(type.IsScalar() && type.IsFloat());
  auto n = MakeRef<FloatConst>();
  n->dtype = type;
  n->value = RoundToType(type, value);
  return n;
}

Expr StringConst::Make(std::string value) {
  auto n = MakeRef<StringConst>();
  n->dtype = DType::Handle();
  n->value = std::move(value);
  return n;
}

Var VarNode::Make(std::string name, DType type) {
  auto n = MakeRef<VarNode>();
  n->dtype = type;
  n->name = std::move(name);
  return n;
}

Var VarNode::MakeCount(std::string name) {
  auto n = MakeRef<VarNode>();
  n->dtype = DType::Index();
  n->name = std::move(name);
  n->counts = true;
  return n;
}

Expr Unary::Make(UnaryOp op, Expr value) {
  TN_CHECK(value);
  if (op == UnaryOp::kNot) TN_CHECK(value->dtype.IsBool(), "! of {}", value->dtype.ToString());
  if (op == UnaryOp::kBitNot) TN_CHECK(value->dtype.IsInt());
  auto n = MakeRef<Unary>();
  n->dtype = value->dtype;
  n->op = op;
  n->value = std::move(value);
  return n;
}

Expr Binary::Make(BinaryOp op, Expr lhs, Expr rhs) {
  TN_CHECK(lhs && rhs);
  TN_CHECK(lhs->dtype == rhs->dtype, "operands of {} differ: {} and {}", Info(op).text,
           lhs->dtype.ToString(), rhs->dtype.ToString());
  if (op == BinaryOp::kAnd || op == BinaryOp::kOr) TN_CHECK(lhs->dtype.IsBool());
  auto n = MakeRef<Binary>();
  n->dtype = lhs->dtype;
  if (Info(op).is_comparison)
    n->dtype = DType::Bool().WithLanes(lhs->dtype.lanes, lhs->dtype.scalable);
  n->op = op;
  n->lhs = std::move(lhs);
  n->rhs = std::move(rhs);
  return n;
}

Expr Select::Make(Expr condition, Expr on_true, Expr on_false) {
  TN_CHECK(condition && on_true && on_false);
  TN_CHECK(condition->dtype.IsBool() && on_true->dtype == on_false->dtype,
           "select of {}: {} and {}", condition->dtype.ToString(), on_true->dtype.ToString(),
           on_false->dtype.ToString());
  TN_CHECK(condition->dtype.lanes == on_true->dtype.lanes || condition->dtype.IsScalar());
  auto n = MakeRef<Select>();
  n->dtype = on_true->dtype;
  n->condition = std::move(condition);
  n->on_true = std::move(on_true);
  n->on_false = std::move(on_false);
  return n;
}

Expr CastExpr::Make(DType type, Expr value) {
  TN_CHECK(value);
  type = type.WithLanes(value->dtype.lanes, value->dtype.scalable);
  if (value->dtype == type) return value;
  auto n = MakeRef<CastExpr>();
  n->dtype = type;
  n->value = std::move(value);
  return n;
}

Expr Load::Make(Buffer buffer, std::vector<Expr> indices, Expr mask) {
  TN_CHECK(buffer);
  DType lanes = DType::Index();
  for (const Expr& i : indices) {
    TN_CHECK(i && (i->dtype.IsIndex() || i->dtype.IsInt()), "index of {} is {}", buffer->name,
             i ? i->dtype.ToString() : "null");
    if (i->dtype.IsVector()) lanes = i->dtype;
  }
  auto n = MakeRef<Load>();
  n->dtype = buffer->dtype.WithLanes(lanes.lanes, lanes.scalable);
  TN_CHECK(!mask || (mask->dtype.IsBool() && mask->dtype.lanes == n->dtype.lanes));
  n->buffer = std::move(buffer);
  n->indices = std::move(indices);
  n->mask = std::move(mask);
  return n;
}

Expr Ramp::Make(Expr base, Expr stride, int32_t lanes, bool scalable) {
  TN_CHECK(base && stride && base->dtype == stride->dtype && base->dtype.IsScalar() && lanes >= 1);
  auto n = MakeRef<Ramp>();
  n->dtype = base->dtype.WithLanes(lanes, scalable);
  n->base = std::move(base);
  n->stride = std::move(stride);
  return n;
}

Expr Broadcast::Make(Expr value, int32_t lanes, bool scalable) {
  TN_CHECK(value && value->dtype.IsScalar() && lanes >= 1);
  auto n = MakeRef<Broadcast>();
  n->dtype = value->dtype.WithLanes(lanes, scalable);
  n->value = std::move(value);
  return n;
}

Expr Call::Make(Intrinsic intrinsic, std::vector<Expr> args, DType given) {
  const IntrinsicInfo& info = Info(intrinsic);
  TN_CHECK(info.arity < 0 || args.size() == static_cast<size_t>(info.arity),
           "{} takes {} arguments", info.text, info.arity);
  auto n = MakeRef<Call>();
  switch (info.type) {
    case IntrinsicType::kSame: n->dtype = args.at(0)->dtype; break;
    case IntrinsicType::kBool:
      n->dtype = DType::Bool().WithLanes(args.at(0)->dtype.lanes, args.at(0)->dtype.scalable);
      break;
    case IntrinsicType::kGiven: n->dtype = given; break;
  }
  n->intrinsic = intrinsic;
  n->args = std::move(args);
  return n;
}

// ---- building ----

Expr IndexConst(int64_t value) { return IntConst::Make(DType::Index(), value); }
Expr BoolConst(bool value) { return IntConst::Make(DType::Bool(), value); }

Expr MakeIntConst(DType type, int64_t value) {
  DType element = type.Element();
  Expr c = element.IsFloat() ? FloatConst::Make(element, static_cast<double>(value))
                             : IntConst::Make(element, value);
  return type.IsVector() ? Broadcast::Make(c, type.lanes, type.scalable) : c;
}

Expr LowestOf(DType type) {
  if (type.IsFloat()) return MakeConst(type, LeastOf(type.Element()));
  return MakeIntConst(type,
                      type.IsSigned() ? static_cast<int64_t>(uint64_t{1} << (type.bits - 1)) : 0);
}

Expr HighestOf(DType type) {
  if (type.IsFloat()) return MakeConst(type, GreatestOf(type.Element()));
  const uint64_t ones = ~uint64_t{0} >> (64 - type.bits);
  return MakeIntConst(type, static_cast<int64_t>(type.IsSigned() ? ones >> 1 : ones));
}

Expr NeutralOf(BinaryOp op, DType type) {
  switch (op) {
    case BinaryOp::kAdd:
    case BinaryOp::kBitOr:
    case BinaryOp::kBitXor:
    case BinaryOp::kOr: return MakeIntConst(type, 0);
    case BinaryOp::kMul:
    case BinaryOp::kAnd: return MakeIntConst(type, 1);
    case BinaryOp::kBitAnd: return MakeIntConst(type, type.IsBool() ? 1 : -1);
    case BinaryOp::kMax: return LowestOf(type);
    case BinaryOp::kMin: return HighestOf(type);
    default: return nullptr;  // NOLINT: no such element, or on one side alone
  }
}

Expr MakeConst(DType type, double value) {
  DType element = type.Element();
  if (!element.IsFloat()) return MakeIntConst(type, static_cast<int64_t>(value));
  Expr c = FloatConst::Make(element, value);
  return type.IsVector() ? Broadcast::Make(c, type.lanes, type.scalable) : c;
}

std::optional<int64_t> AsInt(const Expr& e) {
  if (const auto* c = As<IntConst>(e)) return c->value;
  if (const auto* b = As<Broadcast>(e)) return AsInt(b->value);
  return std::nullopt;
}

std::optional<double> AsFloat(const Expr& e) {
  if (const auto* c = As<FloatConst>(e)) return c->value;
  if (const auto* b = As<Broadcast>(e)) return AsFloat(b->value);
  if (auto i = AsInt(e)) return static_cast<double>(*i);
  return std::nullopt;
}

bool IsZero(const Expr& e) {
  auto v = AsInt(e);
  return v && *v == 0;
}
bool IsOne(const Expr& e) {
  auto v = AsInt(e);
  return v && *v == 1;
}

static int64_t FloorDiv(int64_t a, int64_t b) {
  int64_t q = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;
}

// Folds index constants and the neutral elements that hand-built subscripts are full of; the
// simplifier does the rest.
static Expr Build(BinaryOp op, Expr a, Expr b) {
  if (a->dtype.IsIndex() && a->dtype.IsScalar()) {
    auto x = AsInt(a), y = AsInt(b);
    int64_t r = 0;
    if (x && y) {
      if (op == BinaryOp::kAdd && !__builtin_add_overflow(*x, *y, &r)) return IndexConst(r);
      if (op == BinaryOp::kSub && !__builtin_sub_overflow(*x, *y, &r)) return IndexConst(r);
      if (op == BinaryOp::kMul && !__builtin_mul_overflow(*x, *y, &r)) return IndexConst(r);
      if (op == BinaryOp::kDiv && *y > 0) return IndexConst(FloorDiv(*x, *y));
      if (op == BinaryOp::kMod && *y > 0) return IndexConst(*x - FloorDiv(*x, *y) * *y);
      if (op == BinaryOp::kMin) return IndexConst(std::min(*x, *y));
      if (op == BinaryOp::kMax) return IndexConst(std::max(*x, *y));
    }
    if (y && *y == 0 && (op == BinaryOp::kAdd || op == BinaryOp::kSub)) return a;
    if (x && *x == 0 && op == BinaryOp::kAdd) return b;
    if (y && *y == 1 && (op == BinaryOp::kMul || op == BinaryOp::kDiv)) return a;
    if (x && *x == 1 && op == BinaryOp::kMul) return b;
    if (y && *y == 0 && op == BinaryOp::kMul) return b;
    if (x && *x == 0 && op == BinaryOp::kMul) return a;
    if (y && *y == 1 && op == BinaryOp::kMod) return IndexConst(0);
  }
  return Binary::Make(op, std::move(a), std::move(b));
}

Expr operator+(Expr a, Expr b) { return Build(BinaryOp::kAdd, std::move(a), std::move(b)); }
Expr operator-(Expr a, Expr b) { return Build(BinaryOp::kSub, std::move(a), std::move(b)); }
Expr operator*(Expr a, Expr b) { return Build(BinaryOp::kMul, std::move(a), std::move(b)); }
Expr operator/(Expr a, Expr b) { return Build(BinaryOp::kDiv, std::move(a), std::move(b)); }
Expr operator%(Expr a, Expr b) { return Build(BinaryOp::kMod, std::move(a), std::move(b)); }
static Expr Like(const Expr& a, int64_t b) { return MakeIntConst(a->dtype, b); }
Expr operator+(Expr a, int64_t b) { return Build(BinaryOp::kAdd, a, Like(a, b)); }
Expr operator-(Expr a, int64_t b) { return Build(BinaryOp::kSub, a, Like(a, b)); }
Expr operator*(Expr a, int64_t b) { return Build(BinaryOp::kMul, a, Like(a, b)); }
Expr operator/(Expr a, int64_t b) { return Build(BinaryOp::kDiv, a, Like(a, b)); }
Expr operator%(Expr a, int64_t b) { return Build(BinaryOp::kMod, a, Like(a, b)); }
Expr operator-(Expr a) { return Unary::Make(UnaryOp::kNeg, std::move(a)); }
Expr Min(Expr a, Expr b) { return Build(BinaryOp::kMin, std::move(a), std::move(b)); }
Expr Max(Expr a, Expr b) { return Build(BinaryOp::kMax, std::move(a), std::move(b)); }
Expr Lt(Expr a, Expr b) { return Binary::Make(BinaryOp::kLt, std::move(a), std::move(b)); }
Expr Le(Expr a, Expr b) { return Binary::Make(BinaryOp::kLe, std::move(a), std::move(b)); }
Expr Gt(Expr a, Expr b) { return Binary::Make(BinaryOp::kGt, std::move(a), std::move(b)); }
Expr Ge(Expr a, Expr b) { return Binary::Make(BinaryOp::kGe, std::move(a), std::move(b)); }
Expr Eq(Expr a, Expr b) { return Binary::Make(BinaryOp::kEq, std::move(a), std::move(b)); }
Expr Ne(Expr a, Expr b) { return Binary::Make(BinaryOp::kNe, std::move(a), std::move(b)); }
Expr And(Expr a, Expr b) { return Binary::Make(BinaryOp::kAnd, std::move(a), std::move(b)); }
Expr Or(Expr a, Expr b) { return Binary::Make(BinaryOp::kOr, std::move(a), std::move(b)); }
Expr Not(Expr a) { return Unary::Make(UnaryOp::kNot, std::move(a)); }

Expr CeilDiv(Expr a, Expr b) { return (a + (b - 1)) / b; }

template class NodeOf<IntConst, NodeKind::kIntConst, ExprNode>;
template class NodeOf<FloatConst, NodeKind::kFloatConst, ExprNode>;
template class NodeOf<StringConst, NodeKind::kStringConst, ExprNode>;
template class NodeOf<VarNode, NodeKind::kVar, ExprNode>;
template class NodeOf<Unary, NodeKind::kUnary, ExprNode>;
template class NodeOf<Binary, NodeKind::kBinary, ExprNode>;
template class NodeOf<Select, NodeKind::kSelect, ExprNode>;
template class NodeOf<CastExpr, NodeKind::kCast, ExprNode>;
template class NodeOf<Load, NodeKind::kLoad, ExprNode>;
template class NodeOf<Ramp, NodeKind::kRamp, ExprNode>;
template class NodeOf<Broadcast, NodeKind::kBroadcast, ExprNode>;
template class NodeOf<Call, NodeKind::kCall, ExprNode>;

}  // namespace tenon
