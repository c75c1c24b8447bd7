// Numbers of few bits that stand for floats: q stands for (q - zero) · scale.
//
// Scales and zero points are one for the whole tensor, one for each slice along an axis, or one for
// each block of an axis; spread to the tensor's shape they are plain arithmetic. Products and
// convolutions of such numbers are those of integers (ops_integer.cc), and what they give is
// multiplied by the scales of both operands over that of the result.
#include "frontend/onnx/call_sizes.h"
#include "frontend/onnx/narrow.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/quantize.h"

namespace tenon::onnx {
namespace {

// What a scale or a zero point says of each element of x.
struct Spread {
  int64_t axis = 1;
  int64_t block = 0;  // elements of the axis that share one; 0: one for each slice
};

Expected<Val> SpreadOver(const OpContext& c, const Val& v, const Val& x, const Spread& spread) {
  if (!v || !x) return v;
  if (graph::StaticCount(v.dims()) == 1) return Reshape(v, {});
  if (v.rank() == 1 && spread.block == 0) {
    // Where there is no such axis it can only be for the whole.
    if (spread.axis >= x.rank() && !AsInt(v.dim(0)))
      return Reshape(Conformed(v, {IndexConst(1)}), {});
    TN_ASSIGN_OR_RETURN(const int64_t axis, c.NormalizeAxis(spread.axis, x.rank(), "axis"));
    Dims dims(x.dims().size(), IndexConst(1));
    dims[static_cast<size_t>(axis)] = v.dim(0);
    return Beside(Reshape(v, std::move(dims)), x.dims());
  }
  if (v.rank() != x.rank() || spread.block < 1) {
    return c.Error(
        "expected a scale for the whole of {}, for an axis, or for blocks of one, but got "
        "{} with block_size {}",
        c.b.type(x.id()).ToString(), c.b.type(v.id()).ToString(), spread.block);
  }
  TN_ASSIGN_OR_RETURN(const int64_t axis, c.NormalizeAxis(spread.axis, x.rank(), "axis"));
  const Val each = Repeat(v, axis, IndexConst(spread.block));
  return Slice(each, axis, IndexConst(0), x.dim(axis));
}

Expected<Spread> ReadSpread(OpContext& c) {
  Spread spread;
  if (c.opset >= 13) {
    TN_ASSIGN_OR_RETURN(spread.axis, c.Int("axis", 1));
  }
  if (c.opset >= 21) {
    TN_ASSIGN_OR_RETURN(spread.block, c.Int("block_size", 0));
  }
  if (spread.block < 0 || spread.block > INT32_MAX)
    return c.Error("expected a sensible block_size, but got {}", spread.block);
  return spread;
}

// A type of the graph, and the narrow one whose bytes it stands for, if it does.
struct ElementType {
  DType dtype;
  const NarrowType* narrow = nullptr;

  int bits() const { return narrow ? narrow->bits : dtype.bits; }
  bool IsFloat() const { return narrow && narrow->is_float; }
  std::string ToString() const { return narrow ? narrow->name : dtype.ToString(); }
  friend bool operator==(const ElementType&, const ElementType&) = default;
};

ElementType TypeOf(OpContext& c, size_t i) { return {c.Type(i).dtype, c.Narrow(i)}; }

Expected<std::optional<ElementType>> ReadType(OpContext& c, const char* name) {
  TN_ASSIGN_OR_RETURN(const int64_t code, c.Int(name, 0));
  if (code == 0) return std::optional<ElementType>();
  if (code < 0 || code > INT32_MAX) return c.Error("unknown data type {}", code);
  TN_ASSIGN_OR_RETURN(const DType type, StorageOf(static_cast<int32_t>(code)));
  return std::optional(ElementType{type, NarrowTypeOf(static_cast<int32_t>(code))});
}

// The numbers of a tensor, as a float type.
Val NumbersOf(const Val& x, const ElementType& type, DType as) {
  return x && type.narrow ? Decoded(x, *type.narrow, as) : Cast(x, as);
}

Status CheckQuantized(const OpContext& c, DType type, int most_bits) {
  if (type.IsInt() && type.bits <= most_bits) return Ok();
  return c.Error("expected integers of at most {} bits, but got {}", most_bits, type.ToString());
}

// round(x) + zero as `type`, within its range.
Val Quantized(const Val& x, const Val& zero, const ElementType& type, bool saturate = true) {
  if (!x) return x;
  if (type.IsFloat()) {
    const Val moved = zero ? x + NumbersOf(zero, type, x.dtype()) : x;
    return Encoded(moved, *type.narrow, {.saturate = saturate});
  }
  Val y = Round(x);
  if (zero) y = y + NumbersOf(zero, type, y.dtype());
  if (type.bits() == type.dtype.bits) return Cast(y, type.dtype);  // which saturates
  const double half = static_cast<double>(int64_t{1} << (type.bits() - 1));
  const double least = type.dtype.IsSigned() ? -half : 0,
               most = type.dtype.IsSigned() ? half - 1 : 2 * half - 1;
  if (!y) return y;
  y = y.formula().Emit(OpKind::kClip, {y}, {{"lo", least}, {"hi", most}});
  return Cast(y, type.dtype);
}

Status ImportQuantize(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 3));
  TN_ASSIGN_OR_RETURN(const Spread spread, ReadSpread(c));
  std::optional<ElementType> type, precision;
  bool saturate = true;  // of narrow floats
  if (c.opset >= 19) {
    TN_ASSIGN_OR_RETURN(saturate, c.Bool("saturate", true));
  }
  if (c.opset >= 21) {
    TN_ASSIGN_OR_RETURN(type, ReadType(c, "output_dtype"));
  }
  if (c.opset >= 23) {
    TN_ASSIGN_OR_RETURN(precision, ReadType(c, "precision"));
  }
  if (c.Has(2) && type && !(*type == TypeOf(c, 2))) {
    return c.Error("expected a zero point of output_dtype {}, but got {}", type->ToString(),
                   TypeOf(c, 2).ToString());
  }
  const ElementType scales = TypeOf(c, 1);
  if (c.Narrow(0) || (scales.narrow && !scales.IsFloat()) || (precision && precision->narrow))
    return c.Error(
        "expected an input and a precision of float, not narrower than 16 bits, and a scale of "
        "float");
  if (!type) type = c.Has(2) ? TypeOf(c, 2) : ElementType{DType::UInt(8)};
  TN_RETURN_IF_ERROR(CheckQuantized(c, type->dtype, 16));
  const Formula f(c);
  const DType wide = DType::Float(c.Type(0).dtype == DType::Float(64) ? 64 : 32);
  const Val x = Cast(f.In(0), wide);
  TN_ASSIGN_OR_RETURN(const Val scale, SpreadOver(c, NumbersOf(f.In(1), scales, wide), x, spread));
  TN_ASSIGN_OR_RETURN(const Val zero, SpreadOver(c, f.In(2), x, spread));
  Val ratio = x / scale;
  if (precision) ratio = Cast(Cast(ratio, precision->dtype), wide);
  TN_RETURN_IF_ERROR(f.Result(Quantized(ratio, zero, *type, saturate)));
  c.SetNarrow(0, type->narrow);
  return Ok();
}

Status ImportDequantize(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 3));
  TN_ASSIGN_OR_RETURN(const Spread spread, ReadSpread(c));
  std::optional<ElementType> type;
  if (c.opset >= 23) {
    TN_ASSIGN_OR_RETURN(type, ReadType(c, "output_dtype"));
  }
  const ElementType from = TypeOf(c, 0);
  TN_RETURN_IF_ERROR(CheckQuantized(c, from.dtype, 32));
  if (c.Has(2) && !(TypeOf(c, 2) == from)) {
    return c.Error("expected a zero point of {} like the input, but got {}", from.ToString(),
                   TypeOf(c, 2).ToString());
  }
  const NarrowType* scales = c.Narrow(1);
  if (type && type->narrow)
    return c.Error("expected a result of float, but got {}", type->ToString());
  const Formula f(c);
  const Val x = f.In(0);
  const DType given = scales ? DType::Float(32) : c.Type(1).dtype;
  const DType wide = graph::AccumulatorOf(given);
  const Val factor = scales ? Decoded(f.In(1), *scales, wide) : Cast(f.In(1), wide);
  TN_ASSIGN_OR_RETURN(const Val scale, SpreadOver(c, factor, x, spread));
  TN_ASSIGN_OR_RETURN(const Val zero, SpreadOver(c, f.In(2), x, spread));
  Val y = NumbersOf(x, from, wide);
  if (zero) y = y - NumbersOf(zero, from, wide);
  return f.Result(Cast(y * scale, type ? type->dtype : given));
}

// ---- Products and convolutions. Inputs: a, scale, zero; b, scale, zero; the result's scale, zero.
// ----

// One per row, or column, of a product of matrices.
Val AlongMatrix(const Val& v, bool rows) {
  if (!v || graph::StaticCount(v.dims()) == 1) return Reshape(v, {});
  return rows && v.rank() == 1 ? Unsqueeze(v, 1) : v;
}

Status CheckPlain(const OpContext& c, size_t i) {
  if (graph::StaticCount(c.Dims(i)) == 1) return Ok();
  return c.Error("expected one number in input {}, but got {}", i, c.Type(i).ToString());
}

// Of narrow floats, whose product is one of floats, or beside such a result.
Expected<ValueId> ProductOfNumbers(OpContext& c, const Matrices& m) {
  const Formula f(c);
  const auto numbers = [&](ValueId v, size_t i, size_t zero) {
    const DType f32 = DType::Float(32);
    const Val x = NumbersOf(f.Of(v), TypeOf(c, i), f32);
    return x - AlongMatrix(NumbersOf(f.In(zero), TypeOf(c, zero), f32), i == 0);
  };
  const Val product = MatMul(numbers(m.a, 0, 2), numbers(m.b, 3, 5));
  TN_RETURN_IF_ERROR(f.Done());
  return product.id();
}

Status ImportQLinearMatMul(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(8, 8));
  TN_RETURN_IF_ERROR(CheckQuantized(c, c.Type(7).dtype, 8));
  const ElementType types[] = {TypeOf(c, 0), TypeOf(c, 3), TypeOf(c, 7)};
  if (!(TypeOf(c, 2) == types[0]) || !(TypeOf(c, 5) == types[1]))
    return c.Error("expected zero points of the operands' types, but got {} and {}",
                   TypeOf(c, 2).ToString(), TypeOf(c, 5).ToString());
  TN_ASSIGN_OR_RETURN(const Matrices m, AsMatrices(c, 0, 3));
  const bool integers = !types[0].narrow && !types[1].narrow;
  TN_ASSIGN_OR_RETURN(const ValueId sum,
                      integers ? IntegerProduct(c, m, {0, 3, 2, 5}) : ProductOfNumbers(c, m));
  const Formula f(c);
  const DType f32 = DType::Float(32);
  const Val factor = AlongMatrix(Cast(f.In(1), f32), true) *
                     AlongMatrix(Cast(f.In(4), f32), false) / AlongMatrix(Cast(f.In(6), f32), true);
  const Val y = Quantized(Cast(f.Of(sum), f32) * factor, AlongMatrix(f.In(7), true), types[2]);
  TN_RETURN_IF_ERROR(f.Done());
  TN_RETURN_IF_ERROR(SetProduct(c, m, y.id()));
  c.SetNarrow(0, types[2].narrow);
  return Ok();
}

// The scale of the weights may be one per output channel; the bias is one of the sums.
Status ImportQLinearConv(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(8, 9));
  TN_RETURN_IF_ERROR(CheckQuantized(c, c.Type(7).dtype, 8));
  for (size_t i : {1, 2, 6, 7}) TN_RETURN_IF_ERROR(CheckPlain(c, i));
  TN_ASSIGN_OR_RETURN(const ValueId sum, IntegerConv(c, {0, 3, 2, 5}));
  const Formula f(c);
  const DType f32 = DType::Float(32);
  Val y = f.Of(sum);
  Dims channels(static_cast<size_t>(std::max<int64_t>(y.rank() - 1, 1)), IndexConst(1));
  const auto per_channel = [&](const Val& v) {
    if (graph::StaticCount(v.dims()) == 1) return Reshape(v, {});
    channels[0] = v.dim(0);
    return Reshape(v, channels);
  };
  if (c.Has(8)) y = y + per_channel(f.In(8));
  const Val factor = Reshape(f.In(1), {}) * per_channel(f.In(4)) / Reshape(f.In(6), {});
  return f.Result(Quantized(Cast(y, f32) * Cast(factor, f32), Reshape(f.In(7), {}),
                            ElementType{c.Type(7).dtype}));
}

constexpr char kContrib[] = "com.microsoft";
constexpr OpRow kRows[] = {
    {.name = "QuantizeLinear", .since = 1, .import = ImportQuantize, .domain = kContrib},
    {.name = "DequantizeLinear", .since = 1, .import = ImportDequantize, .domain = kContrib},
    {"QuantizeLinear", 10, ImportQuantize},
    {"DequantizeLinear", 10, ImportDequantize},
    {"QLinearMatMul", 10, ImportQLinearMatMul},
    {"QLinearConv", 10, ImportQLinearConv},
};

}  // namespace

Val Quantized(const Val& ratio, const Val& zero, DType type) {
  return Quantized(ratio, zero, ElementType{type});
}

Val Dequantized(const Val& q, const Val& scale, const Val& zero) {
  const DType f32 = DType::Float(32);
  const Val number = Cast(q, f32);
  return (zero ? number - Cast(zero, f32) : number) * scale;
}

std::span<const OpRow> QuantizeRows() { return kRows; }

}  // namespace tenon::onnx
