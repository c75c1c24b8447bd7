// Scalar arithmetic as C, meaning what the IR means.
//
// C's operators are not ours: signed overflow is undefined, small types are promoted to int, / and
// % truncate and trap, shifts by the width are undefined, comparing an unsigned value with 0 warns.
// Each operator is written in the shortest form that is right for what is known of its operands,
// and as a call of a helper where none is:
//
//   a + b of i32             (int32_t)((uint32_t)a + (uint32_t)b)
//   a / b of index           a / b where neither is negative, else a helper that floors
//   max(a, b) of f32         tn_max_f32(a, b), which gives the other operand where one is NaN
//
// Text carries how strongly it binds, so that parentheses stand where C needs them, or where a
// compiler would warn that people might misread it, and nowhere else.

#include "codegen/c_family/values.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "support/check.h"

namespace tenon::codegen {

namespace {

bool IsHalf(DType type) { return type.IsFloat() && type.bits == 16; }
// Held as their bits.
bool IsBits(DType type) { return IsHalf(type) || type.IsFloat8(); }

const char* Operator(BinaryOp op) {
  switch (op) {
    case BinaryOp::kBitAnd: return "&";
    case BinaryOp::kBitOr: return "|";
    case BinaryOp::kBitXor: return "^";
    default: return Info(op).text;  // NOLINT: the others are written as in C
  }
}

// Written as a number: a literal, or one with a suffix.
bool IsConstant(const SourceText& v) {
  return v.is_literal || (v.text[0] >= '0' && v.text[0] <= '9') || v.text.starts_with("UINT64_C(");
}

}  // namespace

std::string SourceValues::TypeName(DType type) const {
  if (type.IsFloat8()) return TypeName(DType::UInt(8));
  const char* name = language_.TypeName(type.IsIndex() ? DType::Int(index_bits_) : type);
  return name ? name : "";
}

std::string SourceValues::MemoryTypeName(DType type) const {
  return TypeName(type.IsBool() ? DType::UInt(8) : type);
}

SourceText SourceValues::Infix(const char* op, Binding binding, const SourceText& l,
                               const SourceText& r) {
  // Comparisons and bits never stand in each other, nor beside shifts, without parentheses:
  // compilers warn where people would have to look the order up.
  Binding left = binding, right = binding;
  if (binding == Binding::kAdd) right = Binding::kMultiply;
  if (binding == Binding::kMultiply) right = Binding::kUnary;
  if (binding == Binding::kCompare) left = right = Binding::kAdd;
  if (binding == Binding::kBits) left = right = Binding::kUnary;
  if (binding == Binding::kAnd || binding == Binding::kOr) left = right = Binding::kCompare;
  return {l.As(left) + " " + op + " " + r.As(right), binding, std::max(l.depth, r.depth) + 1,
          false};
}

SourceText SourceValues::CastTo(const std::string& type, const SourceText& v) {
  return {"(" + type + ")" + v.As(Binding::kUnary), Binding::kUnary, v.depth + 1, false};
}

SourceText SourceValues::CallOf(const std::string& name, const std::vector<SourceText>& args) {
  SourceText out{name + "(", Binding::kPrimary, 0, false};
  for (size_t i = 0; i < args.size(); ++i) {
    out.text += (i ? ", " : "") + args[i].text;
    out.depth = std::max(out.depth, args[i].depth + 1);
  }
  out.text += ")";
  return out;
}

SourceText SourceValues::Int(DType type, int64_t value) {
  if (type.IsBool()) return {value ? "true" : "false", Binding::kPrimary, 0, false};
  const bool is_long = type.bits == 64 && (value < std::numeric_limits<int32_t>::min() + 1 ||
                                           value > std::numeric_limits<int32_t>::max());
  std::string text;
  if (type.code == TypeCode::kUInt) {
    const auto bits = static_cast<uint64_t>(value);
    text = type.bits == 64   ? fmt::format("UINT64_C({})", bits)
           : type.bits == 32 ? fmt::format("{}u", bits)
                             : fmt::format("{}", bits);
    return {text, Binding::kPrimary, 0, type.bits < 32};
  }
  if (value == std::numeric_limits<int64_t>::min() && type.bits == 64) {
    return {"INT64_MIN", Binding::kPrimary, 0, false};
  }
  if (value == std::numeric_limits<int32_t>::min()) {
    return {"INT32_MIN", Binding::kPrimary, 0, type.bits < 64};
  }
  text = is_long || (type.bits == 64 && !type.IsIndex()) ? fmt::format("INT64_C({})", value)
                                                         : fmt::format("{}", value);
  const bool literal = text[0] != 'I';
  return {text, text[0] == '-' ? Binding::kUnary : Binding::kPrimary, 0, literal};
}

SourceText SourceValues::Float(DType type, double value) {
  if (type.IsFloat8()) return Int(DType::UInt(8), FormatOf(type.float8).CodeOf(value));
  if (IsHalf(type)) {
    // The type's own rounding has been done; its bits are those of the nearest float's.
    SourceText wide = Float(DType::Float(32), value);
    return Narrow(type, wide);
  }
  std::string text;
  if (std::isnan(value)) {
    text = "NAN";
  } else if (std::isinf(value)) {
    text = value < 0 ? "-INFINITY" : "INFINITY";
  } else {
    text =
        type.bits == 64 ? fmt::format("{}", value) : fmt::format("{}", static_cast<float>(value));
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    if (type.bits == 32) text += "f";
  }
  if (type.bits == 64 && !std::isfinite(value)) text = "(double)" + text;
  const bool primary = text[0] != '-' && text[0] != '(';
  return {text, primary ? Binding::kPrimary : Binding::kUnary, 0, false};
}

SourceText SourceValues::Widen(DType half, const SourceText& v) {
  return Helper("widen", half, {v});
}

SourceText SourceValues::Narrow(DType half, const SourceText& v) {
  return Helper("narrow", half, {v});
}

SourceText SourceValues::Unary(UnaryOp op, DType type, const SourceText& v) {
  if (IsHalf(type)) {
    TN_CHECK(op == UnaryOp::kNeg);
    return CastTo("uint16_t",
                  {v.As(Binding::kUnary) + " ^ 0x8000", Binding::kBits, v.depth, false});
  }
  const bool negates = v.text[0] == '-';  // "--" would be an operator
  const std::string operand = negates ? "(" + v.text + ")" : v.As(Binding::kUnary);
  if (type.IsBool()) return {"!" + operand, Binding::kUnary, v.depth + 1, false};
  if (op == UnaryOp::kBitNot) {
    return CastTo(TypeName(type), {"~" + operand, Binding::kUnary, v.depth + 1, false});
  }
  if (type.IsInt()) return Wrapping(BinaryOp::kSub, type, {"0", Binding::kPrimary, 0, true}, v);
  return {"-" + operand, Binding::kUnary, v.depth + 1, v.is_literal};
}

// Sums and products of data integers, which wrap: in an unsigned type that is not promoted to int.
SourceText SourceValues::Wrapping(BinaryOp op, DType type, const SourceText& l,
                                  const SourceText& r) {
  const Binding binding = op == BinaryOp::kMul ? Binding::kMultiply : Binding::kAdd;
  if (type.code == TypeCode::kUInt && type.bits >= 32 && !l.is_literal) {
    return Infix(Operator(op), binding, l, r);
  }
  const std::string wide = type.bits == 64 ? "uint64_t" : "uint32_t";
  const bool fits = type.bits == 8 || (type.bits == 16 && type.IsSigned());  // in an int
  SourceText sum = fits ? Infix(Operator(op), binding, l, r)
                        : Infix(Operator(op), binding, CastTo(wide, l), CastTo(wide, r));
  return CastTo(TypeName(type), sum);
}

SourceText SourceValues::Compare(BinaryOp op, DType type, const SourceText& l,
                                 const SourceText& r) {
  if (!type.IsFloat() && l.text == r.text) {
    const bool holds = op == BinaryOp::kEq || op == BinaryOp::kLe || op == BinaryOp::kGe;
    return Int(DType::Bool(), holds);
  }
  // A compiler that sees the bounds of an unsigned type compared with itself warns.
  const bool is_order = op != BinaryOp::kEq && op != BinaryOp::kNe;
  if (type.code == TypeCode::kUInt && is_order && (IsConstant(l) || IsConstant(r))) {
    const bool swaps = op == BinaryOp::kGt || op == BinaryOp::kGe;
    const char* family = op == BinaryOp::kLt || op == BinaryOp::kGt ? "lt" : "le";
    return swaps ? Helper(family, type, {r, l}) : Helper(family, type, {l, r});
  }
  return Infix(Operator(op), Binding::kCompare, l, r);
}

SourceText SourceValues::FloatBinary(BinaryOp op, DType type, const SourceText& l,
                                     const SourceText& r) {
  if (Info(op).is_comparison) return Compare(op, type, l, r);
  switch (op) {
    case BinaryOp::kMin: return Helper("min", type, {l, r});
    case BinaryOp::kMax: return Helper("max", type, {l, r});
    case BinaryOp::kMod: return CallOf(type.bits == 64 ? "fmod" : language_.remainder_f32, {l, r});
    case BinaryOp::kDiv:
      if (approximate_ && language_.divide && type.bits == 32)
        return CallOf(language_.divide, {l, r});
      return Infix(Operator(op), Binding::kMultiply, l, r);
    case BinaryOp::kMul: return Infix(Operator(op), Binding::kMultiply, l, r);
    default: return Infix(Operator(op), Binding::kAdd, l, r);  // NOLINT: no operator of floats
  }
}

SourceText SourceValues::IntBinary(BinaryOp op, DType type, const SourceText& l,
                                   const SourceText& r) {
  if (Info(op).is_comparison) return Compare(op, type, l, r);
  switch (op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub:
    case BinaryOp::kMul: return Wrapping(op, type, l, r);
    case BinaryOp::kDiv: return Helper("div", type, {l, r});
    case BinaryOp::kMod: return Helper("mod", type, {l, r});
    case BinaryOp::kMin: return Helper("min", type, {l, r});
    case BinaryOp::kMax: return Helper("max", type, {l, r});
    case BinaryOp::kShl: return Helper("shl", type, {l, r});
    case BinaryOp::kShr: return Helper("shr", type, {l, r});
    default:  // NOLINT: bits
      return CastTo(TypeName(type), Infix(Operator(op), Binding::kBits, l, r));
  }
}

SourceText SourceValues::IndexBinary(BinaryOp op, DType type, const SourceText& l,
                                     const SourceText& r, bool nonnegative) {
  SourceText left = l;
  // Two literals would be computed in int.
  if (l.is_literal && r.is_literal) left = CastTo(TypeName(type), l);
  // A size may be 0 where nothing needs the quotient; only GPUs divide by it without a trap.
  const bool divides = op == BinaryOp::kDiv || op == BinaryOp::kMod;
  const bool traps = divides && !r.is_literal && !language_.gpu;
  const SourceText divisor = traps ? Helper("divisor", type, {r}) : r;
  switch (op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub: return Infix(Operator(op), Binding::kAdd, left, r);
    case BinaryOp::kMul: return Infix(Operator(op), Binding::kMultiply, left, r);
    case BinaryOp::kDiv:
      if (nonnegative) return Infix("/", Binding::kMultiply, left, divisor);
      return Helper("floordiv", type, {l, divisor});
    case BinaryOp::kMod:
      if (nonnegative) return Infix("%", Binding::kMultiply, left, divisor);
      return Helper("floormod", type, {l, divisor});
    default: return IntBinary(op, type, l, r);  // NOLINT: order and comparison are for all types
  }
}

SourceText SourceValues::Binary(BinaryOp op, DType given, const SourceText& l, const SourceText& r,
                                bool nonnegative) {
  const DType type = given.Element();
  if (IsHalf(type)) {
    SourceText wide = FloatBinary(op, DType::Float(32), Widen(type, l), Widen(type, r));
    return Info(op).is_comparison ? wide : Narrow(type, wide);
  }
  if (type.IsFloat()) return FloatBinary(op, type, l, r);
  if (type.IsBool() && !Info(op).is_comparison) {
    const bool all = op == BinaryOp::kAnd || op == BinaryOp::kBitAnd || op == BinaryOp::kMin;
    if (op == BinaryOp::kBitXor) return Infix("!=", Binding::kCompare, l, r);
    return all ? Infix("&&", Binding::kAnd, l, r) : Infix("||", Binding::kOr, l, r);
  }
  if (type.IsHandle()) return Compare(op, type, l, r);
  return type.IsIndex() ? IndexBinary(op, type, l, r, nonnegative) : IntBinary(op, type, l, r);
}

SourceText SourceValues::Select(const SourceText& c, const SourceText& t, const SourceText& f) {
  const int depth = std::max(c.depth, std::max(t.depth, f.depth)) + 1;
  return {c.As(Binding::kAnd) + " ? " + t.As(Binding::kOr) + " : " + f.As(Binding::kOr),
          Binding::kConditional, depth, t.is_literal && f.is_literal};
}

SourceText SourceValues::Cast(DType given_from, DType given_to, const SourceText& v) {
  const DType from = given_from.Element(), to = given_to.Element();
  if (from == to) return v;
  if (IsHalf(from)) return Cast(DType::Float(32), to, Widen(from, v));
  if (IsHalf(to)) {
    if (from == DType::Float(64)) return Narrow(to, Helper("odd", DType::Float(32), {v}));
    if (from.IsFloat()) return Narrow(to, v);
    // Wider integers would be rounded twice on the way through f32.
    const DType wide = DType::Float(from.IsBool() || from.bits <= 16 ? 32 : 64);
    return Cast(wide, to, Cast(from, wide, v));
  }
  if (to.IsBool()) {
    const SourceText zero = from.IsFloat() ? Float(from, 0) : Int(DType::Int(32), 0);
    return Infix("!=", Binding::kCompare, v, zero);
  }
  if (from.IsHandle()) return CastTo(TypeName(to), CastTo("intptr_t", v));
  if (to.IsHandle()) return CastTo(TypeName(to), CastTo("intptr_t", v));
  if (from.IsFloat() && !to.IsFloat()) {
    return CallOf(helpers_.Use("cast", to, from), {v});
  }
  return CastTo(TypeName(to), v);
}

SourceText SourceValues::Reinterpret(DType given_from, DType given_to, const SourceText& v) {
  const DType from = given_from.Element(), to = given_to.Element();
  if (from == to) return v;
  const auto is_integer = [](DType t) { return !t.IsFloat() || IsBits(t); };
  if (is_integer(from) && is_integer(to)) {
    if (from.IsHandle() || to.IsHandle()) return Cast(from, to, v);
    return to.IsBool() ? Cast(from, to, v) : CastTo(TypeName(to), v);
  }
  return CallOf(helpers_.Use("bits", to, from), {v});
}

SourceText SourceValues::MulAdd(DType type, const SourceText& a, const SourceText& b,
                                const SourceText& c) {
  return Helper("muladd", type.Element(), {a, b, c});
}

SourceText SourceValues::Math(Intrinsic intrinsic, DType given,
                              const std::vector<SourceText>& args) {
  const DType type = given.Element();
  if (IsHalf(type)) {
    std::vector<SourceText> wide;
    for (const SourceText& a : args) wide.push_back(Widen(type, a));
    SourceText out = Math(intrinsic, DType::Float(32), wide);
    const bool is_test = intrinsic == Intrinsic::kIsNan || intrinsic == Intrinsic::kIsInf;
    return is_test || out.text.empty() ? out : Narrow(type, out);
  }
  if (type.IsFloat()) {
    const char* name = language_.MathName(intrinsic, type, approximate_);
    if (!name) {
      const char* family = Info(intrinsic).text;
      return helpers_.Has(family, type) ? Helper(family, type, args) : SourceText{};
    }
    SourceText out = CallOf(name, args);
    const bool is_test = intrinsic == Intrinsic::kIsNan || intrinsic == Intrinsic::kIsInf;
    return is_test ? Infix("!=", Binding::kCompare, out, Int(DType::Int(32), 0)) : out;
  }
  if (intrinsic == Intrinsic::kAbs) {
    return type.IsSigned() ? Helper("abs", type, args) : args.at(0);
  }
  if (intrinsic == Intrinsic::kPow || intrinsic == Intrinsic::kPopCount ||
      intrinsic == Intrinsic::kClz) {
    return Helper(Info(intrinsic).text, type, args);
  }
  return {};
}

}  // namespace tenon::codegen
