#include "frontend/onnx/narrow.h"

#include <algorithm>

#include <cmath>
#include <limits>

namespace tenon::onnx {
namespace {

using Special = Minifloat::Special;

constexpr DType kF32 = DType::Float(32), kU32 = DType::UInt(32);
constexpr DType kF64 = DType::Float(64), kU64 = DType::UInt(64);

constexpr NarrowType kTypes[] = {
    {8, "string", 64, false, true},
    {17, "float8e4m3fn", 8, true, true, {8, 4, 3, 7, Special::kFinite}, Float8::kE4M3Fn},
    {18, "float8e4m3fnuz", 8, true, true, {8, 4, 3, 8, Special::kZero}, Float8::kE4M3Fnuz},
    {19, "float8e5m2", 8, true, true, {8, 5, 2, 15, Special::kInfinity}, Float8::kE5M2},
    {20, "float8e5m2fnuz", 8, true, true, {8, 5, 2, 16, Special::kZero}, Float8::kE5M2Fnuz},
    {21, "uint4", 4, false, false},
    {22, "int4", 4, false, true},
    {23, "float4e2m1", 4, true, true, {4, 2, 1, 1, Special::kNone}},
    {24, "float8e8m0", 8, true, false, {8, 8, 0, 127, Special::kFinite}, Float8::kE8M0Fnu},
    {25, "uint2", 2, false, false},
    {26, "int2", 2, false, true},
};

constexpr int64_t Bit(int n) { return int64_t{1} << n; }

Val BitsOf(const Val& x, DType to) {
  return x ? x.formula().Emit(OpKind::kBitCast, {x}, {{"to", to.ToString()}}) : x;
}
Val Shift(OpKind op, const Val& x, int by) {
  return x ? x.formula().Emit(op, {x, x.formula().Number(x.dtype(), by)}) : x;
}

// The exponents of floats, rounded; infinity and NaN are the last code.
Val EncodedExponent(const Val& x, const NarrowRounding& rounding) {
  const Val bits = BitsOf(x, kU32);
  const Val field = Mod(Shift(OpKind::kShr, bits, 23), 256), fraction = Mod(bits, 0x1p23);
  Val up = fraction > 0;
  if (rounding.mode == "down") up = fraction < 0;
  // A half goes to what is even with the bit before it, which numbers but the smallest have.
  if (rounding.mode == "nearest")
    up = (fraction > 0x1p22) | (Equal(fraction, 0x1p22) & (field > 0));
  if (rounding.saturate) up = up & (field < 254);
  return Cast(Where(up & (field < 255), field + 1, field), DType::UInt(8));
}

// By steps of the type: what lies between two powers of two has Bit(mantissa) of them, and so has
// what lies below the smallest normal number.
// f64 is taken as it is: on the way through f32 it would be rounded twice.
Val EncodedFloat(const Val& x, const NarrowType& t, bool saturate) {
  const Val magnitude = Abs(x);
  const bool is_f64 = x.dtype() == kF64;
  const DType bits = is_f64 ? kU64 : kU32;
  const int mantissa = is_f64 ? 52 : 23, bias = is_f64 ? 1023 : 127;
  const int least = bias + 1 - t.format.bias;  // the exponent field of the smallest normal number
  const Val field = Max(Shift(OpKind::kShr, BitsOf(magnitude, bits), mantissa), least);
  const Val step = BitsOf(Shift(OpKind::kShl, field - t.format.mantissa, mantissa), x.dtype());
  const Val steps =
      Cast(Min(Round(magnitude / step), static_cast<double>(Bit(t.format.mantissa + 1))), bits);
  Val code = Shift(OpKind::kShl, field - least, t.format.mantissa) + steps;
  const auto largest = static_cast<double>(t.format.LargestCode()),
             nan = static_cast<double>(t.format.NanCode());
  const bool to_infinity = t.format.special == Special::kInfinity;
  const bool stays = saturate || t.format.special == Special::kNone;
  code = Where(code > largest, stays ? largest : to_infinity ? largest + 1 : nan, code);
  const Val sign =
      Shift(OpKind::kShl, Shift(OpKind::kShr, BitsOf(x, bits), bits.bits - 1), t.bits - 1);
  const double signless = t.format.special == Special::kZero ? 0 : -1;
  code = Where(
      Equal(Cast(code, DType::Int(32)), signless) | (code >= static_cast<double>(Bit(t.bits - 1))),
      code, code + sign);
  return Cast(Where(Apply(OpKind::kIsNan, x), nan, code), DType::UInt(8));
}

// The low bits, which are those of the type.
Val EncodedInteger(const Val& x, const NarrowType& t) {
  const auto size = static_cast<double>(Bit(t.bits));
  const Val low = Mod(Cast(x, DType::Int(32)), size);
  return Cast(t.is_signed ? Where(low >= size / 2, low - size, low) : low, t.storage());
}

// Whether an operator moves elements of its first input, or of all, and does nothing with them.
bool Moves(OpKind op) {
  switch (op) {
    case OpKind::kReshape:
    case OpKind::kTranspose:
    case OpKind::kSlice:
    case OpKind::kConcat:
    case OpKind::kExpand:
    case OpKind::kGather:
    case OpKind::kGatherElements:
    case OpKind::kGatherNd: return true;
    default: return false;
  }
}

// The operands whose elements an operator puts among each other, and does nothing with them.
std::span<const size_t> MovedTogether(const graph::Node& node) {
  static constexpr size_t kOfWhere[] = {1, 2}, kOfPad[] = {0, 1}, kOfScatter[] = {0, 2},
                          kOfOneHot[] = {1};
  if (node.op == OpKind::kWhere) return kOfWhere;
  if (node.op == OpKind::kPad) return kOfPad;
  if (node.op == OpKind::kOneHot) return kOfOneHot;
  if (node.op == OpKind::kScatter && node.attrs.GetString("reduction") == "none") return kOfScatter;
  return {};
}

// A zero, whose code is 0 in all types of numbers that have one; among strings the empty one.
bool IsZero(const graph::Value& v, const NarrowType& type) {
  if (!v.IsConstant() || type.IsExponent()) return false;
  const std::optional<std::vector<int64_t>> number = graph::ReadInts(v, 1);
  return number && number->size() == 1 && number->front() == 0;
}

}  // namespace

const NarrowType* NarrowTypeOf(int32_t elem_type) {
  for (const NarrowType& t : kTypes) {
    if (t.code == elem_type) return &t;
  }
  return nullptr;
}

Expected<DType> StorageOf(int32_t elem_type) {
  const NarrowType* narrow = NarrowTypeOf(elem_type);
  return narrow ? narrow->storage() : ToDType(elem_type);
}

Expected<DType> CallerTypeOf(int32_t elem_type) {
  const NarrowType* narrow = NarrowTypeOf(elem_type);
  return narrow ? narrow->caller() : ToDType(elem_type);
}

Val Decoded(const Val& bytes, const NarrowType& type, DType to) {
  if (type.IsString() && bytes)
    return bytes.formula().Fail(MakeError("strings are no numbers: cast them"));
  // The bits beyond those of the type say nothing.
  if (!type.is_float) return Cast(EncodedInteger(bytes, type), to);
  std::vector<double> numbers;
  for (int64_t code = 0; code < Bit(type.bits); ++code)
    numbers.push_back(type.format.NumberOf(code));
  return Cast(Gather(bytes.formula().Floats(numbers),
                     Mod(Cast(bytes, DType::Int(32)), static_cast<double>(Bit(type.bits))), 0),
              to);
}

Val Encoded(const Val& x, const NarrowType& type, const NarrowRounding& rounding) {
  if (type.IsString() && x) return x.formula().Fail(MakeError("numbers are no strings: cast them"));
  if (!type.is_float) return EncodedInteger(x, type);
  if (type.IsExponent()) return EncodedExponent(Cast(x, kF32), rounding);
  return EncodedFloat(x.dtype() == kF64 ? x : Cast(x, kF32), type, rounding.saturate);
}

// With each other, or with the empty one.
bool NarrowValues::AllOf(const graph::Graph& g, const graph::Node& node,
                         const NarrowType* type) const {
  return std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId v) { return Of(v) == type || IsZero(g.value(v), *type); });
}

Status NarrowValues::Follow(const graph::Graph& g, size_t first_node) {
  for (size_t n = first_node; n < g.nodes.size(); ++n) {
    const graph::Node& node = g.nodes[n];
    const NarrowType* found = nullptr;
    bool all = true;
    for (ValueId v : node.inputs) {
      const NarrowType* type = v == kNoValue ? nullptr : Of(v);
      if (type && !found) found = type;
      all = all && type == found;
    }
    if (!found || node.op == OpKind::kShape) continue;
    if (found->IsString() && node.op == OpKind::kEqual && AllOf(g, node, found)) continue;
    if (const auto together = MovedTogether(node); !together.empty()) {
      bool fits = true;
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const bool element = std::find(together.begin(), together.end(), i) != together.end();
        const NarrowType* type = Of(node.inputs[i]);
        fits = fits && (element ? type == found || IsZero(g.value(node.inputs[i]), *found) : !type);
      }
      // What a pad without a value puts there is a zero.
      if (node.op == OpKind::kPad && node.inputs.size() < 2) fits = fits && !found->IsExponent();
      if (fits) {
        for (ValueId v : node.outputs) Set(v, found);
        continue;
      }
    }
    if (!Moves(node.op) || Of(node.inputs[0]) != found || (node.op == OpKind::kConcat && !all))
      return MakeError(fmt::format("tensors of {} can be {} and moved, but not computed with",
                                   found->name,
                                   found->IsString() ? "compared" : "cast, quantised"));
    for (ValueId v : node.outputs) Set(v, found);
  }
  return Ok();
}

}  // namespace tenon::onnx
