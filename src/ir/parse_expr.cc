// Expressions: precedence climbing, literals that wait for a type, every check of the makers with
// its message.
//
// A literal has no type of its own: in `i + 3` it is an index, in `x * 3` of f32 a float. It is
// kept as digits (an Operand without an expression) until something settles it: the other operand,
// the buffer that is stored to, a stated type. Two literals that meet settle each other as late. So
// of
//
//   A[i + 1] * 2 + select(i < 4, 0, 1)
//
// 1 is an index by i, 2 is A's type by the product, 4 an index, and 0 and 1 wait until the sum
// gives them A's type. Everything that a maker would check is checked here first, with the place
// and what was expected; what a person can write never reaches a failed check.

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "ir/parse.h"
#include "ir/parse_core.h"
#include "support/check.h"
#include "support/strings.h"

namespace tenon {

namespace {

constexpr int32_t kMaxLanes = 1 << 20;

std::optional<BinaryOp> FindBinary(std::string_view text, bool call) {
#define TN_UNARY(name, text)
#define TN_BINARY(name, spelling, prec, result) \
  if (text == spelling && (prec == 0) == call) return BinaryOp::k##name;
#include "ir/ops.def"
#undef TN_UNARY
#undef TN_BINARY
  return std::nullopt;
}

std::optional<Intrinsic> FindIntrinsic(std::string_view text) {
#define TN_INTRINSIC(name, spelling, arity, type, purity, doc) \
  if (text == spelling) return Intrinsic::k##name;
#include "ir/intrinsics.def"
#undef TN_INTRINSIC
  return std::nullopt;
}

// True for the name of a function that is called with a type: extern<i32>("f").
bool StatesType(std::string_view name) {
  auto intrinsic = FindIntrinsic(name);
  return intrinsic && Info(*intrinsic).type == IntrinsicType::kGiven;
}

std::vector<std::string> FunctionNames() {
  std::vector<std::string> names = {"select", "ramp", "broadcast"};
#define TN_UNARY(name, text)
#define TN_BINARY(name, text, prec, result) \
  if (prec == 0) names.push_back(text);
#include "ir/ops.def"
#undef TN_UNARY
#undef TN_BINARY
#define TN_INTRINSIC(name, text, arity, type, purity, doc) names.push_back(text);
#include "ir/intrinsics.def"
#undef TN_INTRINSIC
  return names;
}

bool IsTypeWord(std::string_view word) {
  if (DType::Parse(word)) return true;
  return word.ends_with("x") && DType::Parse(word.substr(0, word.size() - 1));
}

bool SameLanes(DType a, DType b) { return a.lanes == b.lanes && a.scalable == b.scalable; }

// The digits as a float of `type`; nullopt when too large or too small for it.
std::optional<double> ParseFloat(std::string_view digits, DType type) {
  auto read = [&](auto zero) -> std::optional<double> {
    auto value = zero;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), value).ec != std::errc()) {
      return std::nullopt;
    }
    const double rounded = RoundToType(type, value);
    return std::isfinite(rounded) ? std::optional(rounded) : std::nullopt;
  };
  // Rounding once, from the decimal: what was printed as the shortest float reads back as it.
  return type.bits == 64 ? read(0.0) : read(0.0f);
}

// The digits as an integer of `type`, as IntConst holds it.
std::optional<int64_t> ParseInteger(std::string_view digits, bool negative, DType type) {
  uint64_t magnitude = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), magnitude).ec != std::errc()) {
    return std::nullopt;
  }
  const bool is_signed = type.IsSigned();
  const int bits = type.bits - (is_signed ? 1 : 0);
  const uint64_t top =
      bits >= 64 ? std::numeric_limits<uint64_t>::max() : (uint64_t{1} << bits) - 1;
  if (magnitude > top + (negative && is_signed ? 1 : 0)) return std::nullopt;
  if (negative && !is_signed && magnitude != 0) return std::nullopt;
  return static_cast<int64_t>(negative ? ~magnitude + 1 : magnitude);
}

}  // namespace

Expected<Expr> ParseExpr(std::string_view text, const std::vector<NodeRef>& scope,
                         const std::string& file) {
  return TextParser(text, file).WholeExpr(scope);
}

Expected<Expr> TextParser::WholeExpr(const std::vector<NodeRef>& scope) {
  for (const NodeRef& node : scope) {
    if (const auto* var = As<VarNode>(node)) names_.emplace(var->name, node);
    if (const auto* buffer = As<BufferNode>(node)) names_.emplace(buffer->name, node);
  }
  if (!errors_.empty()) return errors_;
  try {
    Expr e = TakeExpr();
    if (Peek().kind != TokenKind::kEnd) FailExpected("the end of the expression");
    return e;
  } catch (const Abort&) {
    return errors_;
  }
}

// ---- literals ----

TextParser::Operand TextParser::Constant(const Token& at, std::string_view digits, bool negative,
                                         DType type) {
  const bool is_float = digits.find_first_of(".eE") != std::string_view::npos;
  Operand out;
  out.at = at;
  if (type.IsFloat()) {
    if (auto value = ParseFloat(digits, type)) {
      out.expr = FloatConst::Make(type.Element(), negative ? -*value : *value);
    }
  } else if (!is_float) {
    if (auto value = ParseInteger(digits, negative, type)) {
      out.expr = IntConst::Make(type.Element(), *value);
    }
  }
  if (!out.expr) {
    Fail(at, fmt::format("{}{} does not fit {}", negative ? "-" : "", digits.substr(0, 80),
                         type.ToString()));
  }
  if (type.IsVector()) {
    out.expr = Broadcast::Make(out.expr, type.lanes, type.scalable);
    out.depth = 2;
  }
  return out;
}

TextParser::Operand TextParser::TakeNumber(bool negative) {
  const Token at = Take();
  const NumberParts parts = SplitNumber(at.text);
  if (parts.type.empty()) {
    Operand out =
        Constant(at, parts.digits, negative, parts.is_float ? DType::Float(32) : DType::Index());
    out.literal = parts.digits;
    out.negative = negative;
    return out;
  }
  auto type = DType::Parse(parts.type);
  if (!type || !type->IsScalar() || type->IsHandle() || type->IsBool()) {
    Fail(at, fmt::format("unknown type '{}' of a number", parts.type.substr(0, 80)));
  }
  return Constant(at, parts.digits, negative, *type);
}

// inf.f32, nan.f16, true, false.
std::optional<TextParser::Operand> TextParser::TakeNamedConstant(bool negative) {
  const Token at = Peek();
  if (at.kind != TokenKind::kWord) return std::nullopt;
  Operand out;
  out.at = at;
  if (!negative && (at.text == "true" || at.text == "false")) {
    out.expr = BoolConst(at.text == "true");
  } else if (at.text.starts_with("inf.") || at.text.starts_with("nan.")) {
    auto type = DType::Parse(at.text.substr(4));
    if (!type || !type->IsFloat() || !type->IsScalar()) return std::nullopt;
    const double value = at.text[0] == 'i' ? std::numeric_limits<double>::infinity()
                                           : std::numeric_limits<double>::quiet_NaN();
    out.expr = FloatConst::Make(*type, negative ? -value : value);
  } else {
    return std::nullopt;
  }
  Take();
  return out;
}

Expr TextParser::Settle(Operand operand, DType type) {
  if (operand.literal.empty() || type.IsBool() || type.IsHandle()) return operand.expr;
  const bool has_point = operand.literal.find_first_of(".eE") != std::string_view::npos;
  if (has_point && !type.IsFloat()) return operand.expr;  // the caller says that the types differ
  return Constant(operand.at, operand.literal, operand.negative, type).expr;
}

void TextParser::Unify(Operand* a, Operand* b) {
  auto follow = [&](Operand* literal, const Operand& other) {
    literal->expr = Settle(*literal, other.expr->dtype);
    literal->literal = {};
    literal->depth = 2;
  };
  if (!a->literal.empty() && (b->literal.empty() || b->expr->dtype.IsFloat())) {
    follow(a, *b);
  } else if (!b->literal.empty() && (a->literal.empty() || a->expr->dtype.IsFloat())) {
    follow(b, *a);
  }
}

// ---- building, checked ----

TextParser::Operand TextParser::Built(const Token& at, Expr e, int depth) {
  if (depth > kMaxDepth) {
    FailLimit(at, fmt::format("expected an expression nested at most {} deep", kMaxDepth));
  }
  Operand out;
  out.expr = std::move(e);
  out.depth = depth;
  out.at = at;
  return out;
}

TextParser::Operand TextParser::MakeUnary(const Token& at, UnaryOp op, Operand value) {
  const DType type = value.expr->dtype;
  const bool fits = (op == UnaryOp::kNot && type.IsBool()) ||
                    (op == UnaryOp::kBitNot && type.IsInt()) || op == UnaryOp::kNeg;
  if (!fits) {
    const char* expected = op == UnaryOp::kNot ? "bool" : "an integer";
    Fail(at,
         fmt::format("operand of {}: expected {} but got {}", Text(op), expected, type.ToString()));
  }
  return Built(at, Unary::Make(op, value.expr), value.depth + 1);
}

TextParser::Operand TextParser::MakeBinary(const Token& at, BinaryOp op, Operand a, Operand b) {
  Unify(&a, &b);
  const DType x = a.expr->dtype, y = b.expr->dtype;
  if (x != y) {
    Fail(at, fmt::format("operands of {} differ: {} and {}", Info(op).text, x.ToString(),
                         y.ToString()));
  }
  if ((op == BinaryOp::kAnd || op == BinaryOp::kOr) && !x.IsBool()) {
    Fail(at, fmt::format("operands of {}: expected bool but got {}", Info(op).text, x.ToString()));
  }
  return Built(at, Binary::Make(op, a.expr, b.expr), std::max(a.depth, b.depth) + 1);
}

Expr TextParser::TakeExpr() { return TakeOperand().expr; }

Expr TextParser::TakeExpr(DType type, std::string_view what) {
  const Token at = Peek();
  Expr e = Settle(TakeOperand(), type);
  if (e->dtype != type) {
    Fail(at, fmt::format("{}: expected {} but got {}", what, type.ToString(), e->dtype.ToString()));
  }
  return e;
}

std::vector<Expr> TextParser::TakeExprs(std::string_view close, std::string_view where) {
  std::vector<Expr> list;
  List(close, where, [&] { list.push_back(TakeExpr()); });
  return list;
}

// ---- operators ----

TextParser::Operand TextParser::TakeBinary(int min_precedence) {
  Operand lhs = TakeUnary();
  for (;;) {
    if (Peek().kind != TokenKind::kPunct) return lhs;
    auto op = FindBinary(Peek().text, /*call=*/false);
    if (!op || Info(*op).precedence < min_precedence) return lhs;
    const Token at = Take();
    Operand rhs = TakeBinary(Info(*op).precedence + 1);
    lhs = MakeBinary(at, *op, std::move(lhs), std::move(rhs));
  }
}

TextParser::Operand TextParser::TakeUnary() {
  Nest nest(this);
  const Token at = Peek();
  if (Accept("!")) return MakeUnary(at, UnaryOp::kNot, TakeUnary());
  if (Accept("~")) return MakeUnary(at, UnaryOp::kBitNot, TakeUnary());
  if (!Accept("-")) return TakePrimary();
  if (Peek().kind == TokenKind::kNumber) return TakeNumber(/*negative=*/true);
  if (auto constant = TakeNamedConstant(/*negative=*/true)) return *constant;
  return MakeUnary(at, UnaryOp::kNeg, TakeUnary());
}

BinaryOp TextParser::TakeBinaryOp() {
  for (bool call : {false, true}) {
    if (auto op = FindBinary(Peek().text, call)) {
      Take();
      return *op;
    }
  }
  FailExpected("an operator");
}

// ---- what operators join ----

TextParser::Operand TextParser::TakePrimary() {
  const Token at = Peek();
  switch (at.kind) {
    case TokenKind::kNumber: return TakeNumber(/*negative=*/false);
    case TokenKind::kString: return Built(at, StringConst::Make(TakeString("a string")), 1);
    case TokenKind::kName: return TakeReference();
    case TokenKind::kPunct:
      if (Accept("(")) {
        Operand inner = TakeOperand();
        inner.literal = {};  // -(3) is a negation, and (3) is settled
        Expect(")", "after an expression");
        return inner;
      }
      break;
    case TokenKind::kWord: {
      if (auto constant = TakeNamedConstant(/*negative=*/false)) return *constant;
      if (At("(", 1))
        return DType::Parse(at.text) ? TakeCast() : TakeFunction(std::string(at.text));
      if (At("<", 1) && StatesType(at.text) && IsTypeWord(Peek(2).text) &&
          (At(">", 3) || At("[", 3))) {
        return TakeFunction(std::string(at.text));
      }
      return TakeReference();
    }
    case TokenKind::kEnd:
    case TokenKind::kError: break;
  }
  FailExpected("an expression");
}

TextParser::Operand TextParser::TakeReference() {
  const Token at = Peek();
  const bool indexed = At("[", 1);
  if (indexed) {
    Access access = TakeAccess();
    return Built(at, Load::Make(access.buffer, access.indices, access.mask), access.depth + 1);
  }
  const std::string name = TakeName("a variable");
  const NodeRef node = Lookup(at, name);
  if (!IsA<VarNode>(node))
    Fail(at, fmt::format("'{}' is a buffer: expected its indices in brackets", name));
  return Built(at, Var(As<VarNode>(node)), 1);
}

TextParser::Operand TextParser::TakeCast() {
  const Token at = Peek();
  const DType type = TakeType();
  Expect("(", "after the type of a cast");
  Operand value = TakeOperand();
  Expect(")", "after the operand of a cast");
  const DType from = value.expr->dtype;
  if (type.IsVector() && !SameLanes(type, from)) {
    Fail(at, fmt::format("cast to {} of another number of lanes: {}", type.ToString(),
                         from.ToString()));
  }
  return Built(at, CastExpr::Make(type, value.expr), value.depth + 1);
}

std::vector<TextParser::Operand> TextParser::TakeArguments() {
  std::vector<Operand> args;
  Expect("(", "before arguments");
  List(")", "after arguments", [&] { args.push_back(TakeOperand()); });
  return args;
}

TextParser::Operand TextParser::TakeFunction(const std::string& name) {
  if (name == "select") return TakeSelect();
  if (name == "ramp" || name == "broadcast") return TakeRampOrBroadcast(name == "ramp");
  if (auto intrinsic = FindIntrinsic(name)) return TakeIntrinsic(*intrinsic);
  const Token at = Take();
  auto op = FindBinary(name, /*call=*/true);
  if (!op) {
    const std::string near = NearestWord(name, FunctionNames());
    Fail(at, fmt::format("unknown function '{}'{}", name,
                         near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
  }
  std::vector<Operand> args = TakeArguments();
  if (args.size() != 2) Fail(at, fmt::format("{} takes 2 arguments but got {}", name, args.size()));
  return MakeBinary(at, *op, std::move(args[0]), std::move(args[1]));
}

TextParser::Operand TextParser::TakeSelect() {
  const Token at = Take();
  std::vector<Operand> args = TakeArguments();
  if (args.size() != 3) Fail(at, fmt::format("select takes 3 arguments but got {}", args.size()));
  Unify(&args[1], &args[2]);
  const DType c = args[0].expr->dtype, x = args[1].expr->dtype, y = args[2].expr->dtype;
  if (!c.IsBool()) Fail(at, fmt::format("select by {}: expected bool", c.ToString()));
  if (x != y)
    Fail(at, fmt::format("sides of select differ: {} and {}", x.ToString(), y.ToString()));
  if (!c.IsScalar() && !SameLanes(c, x)) {
    Fail(at, fmt::format("select by {} of {}: the lanes differ", c.ToString(), x.ToString()));
  }
  const int depth = std::max({args[0].depth, args[1].depth, args[2].depth}) + 1;
  return Built(at, Select::Make(args[0].expr, args[1].expr, args[2].expr), depth);
}

int32_t TextParser::TakeLanes(bool* scalable) {
  *scalable = Accept("vscale");
  if (*scalable) Expect("*", "after vscale");
  const Token at = Peek();
  const int64_t lanes = TakeInt("a number of lanes");
  if (lanes < 1 || lanes > kMaxLanes) {
    Fail(at, fmt::format("expected 1 to {} lanes but got {}", kMaxLanes, lanes));
  }
  return static_cast<int32_t>(lanes);
}

TextParser::Operand TextParser::TakeRampOrBroadcast(bool ramp) {
  const Token at = Take();
  Expect("(", "before arguments");
  Operand first = TakeOperand(), stride;
  if (ramp) {
    Expect(",", "after the base of a ramp");
    stride = TakeOperand();
    Unify(&first, &stride);
    if (first.expr->dtype != stride.expr->dtype) {
      Fail(at, fmt::format("base and stride of a ramp differ: {} and {}",
                           first.expr->dtype.ToString(), stride.expr->dtype.ToString()));
    }
  }
  if (!first.expr->dtype.IsScalar()) {
    Fail(at,
         fmt::format("{}: expected a scalar but got {}", at.text, first.expr->dtype.ToString()));
  }
  Expect(",", "before the number of lanes");
  bool scalable = false;
  const int32_t lanes = TakeLanes(&scalable);
  Expect(")", "after the number of lanes");
  if (ramp) {
    return Built(at, Ramp::Make(first.expr, stride.expr, lanes, scalable),
                 std::max(first.depth, stride.depth) + 1);
  }
  return Built(at, Broadcast::Make(first.expr, lanes, scalable), first.depth + 1);
}

TextParser::Operand TextParser::TakeIntrinsic(Intrinsic intrinsic) {
  const IntrinsicInfo& info = Info(intrinsic);
  const Token at = Take();
  DType given = DType::Index();
  if (info.type == IntrinsicType::kGiven) {
    Expect("<", fmt::format("and a type after {}", info.text));
    given = TakeType();
    Expect(">", "after the type of a call");
  }
  std::vector<Operand> args = TakeArguments();
  if (info.arity >= 0 && args.size() != static_cast<size_t>(info.arity)) {
    Fail(at, fmt::format("{} takes {} argument{} but got {}", info.text, info.arity,
                         info.arity == 1 ? "" : "s", args.size()));
  }
  // Operands of fma and pow are of one type: a literal takes that of the first that has one.
  if (info.type == IntrinsicType::kSame) {
    for (size_t i = 1; i < args.size(); ++i) Unify(&args[0], &args[i]);
    for (size_t i = 1; i < args.size(); ++i) Unify(&args[0], &args[i]);
    // As in `a + b`: what differed here would print as a literal that takes another type.
    for (const Operand& arg : args) {
      const DType first = args[0].expr->dtype, other = arg.expr->dtype;
      if (first.IsHandle() || other == first) continue;
      Fail(at, fmt::format("operands of {} differ: {} and {}", info.text, first.ToString(),
                           other.ToString()));
    }
  }
  std::vector<Expr> values;
  int depth = 0;
  for (Operand& arg : args) {
    depth = std::max(depth, arg.depth);
    values.push_back(arg.expr);
  }
  return Built(at, Call::Make(intrinsic, std::move(values), given), depth + 1);
}

}  // namespace tenon
