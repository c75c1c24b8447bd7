// 8-bit integers with zero points: products, convolutions, and the quantisation in front of them.
//
// A zero point is taken off an operand before it is multiplied. For products that is written as
//   Σ (a - za)(b - zb) = Σ ab - za Σ b - zb Σ a + K za zb
// which keeps the product itself one of bytes, with sums of whole rows and columns beside it. (All
// of it wraps around at 32 bits alike.) The padding of a convolution does not let its sums be
// split by themselves: what is outside becomes zero points first, Σ (x - zx) w = Σ xw - zx Σ w over
// whole windows. Weights' own zero points are taken off with the sums of windows,
//   Σ (x - zx)(w - zw) = Σ (x - zx) w - zw Σ (x - zx)
// or, where there are groups of channels or weights of open sizes, from operands that are widened.
// Units that multiply bytes take weights with signs, so those without and their zero points are
// moved by 128.
#include <algorithm>

#include "frontend/onnx/ops.h"
#include "frontend/onnx/quantize.h"
#include "frontend/onnx/window.h"

namespace tenon::onnx {
namespace {

const std::string kI32 = "i32";

Status CheckBytes(const OpContext& c, ValueId v) {
  const DType t = c.b.type(v).dtype;
  if (t.IsInt() && t.bits == 8) return Ok();
  return c.Error("expected an operand of u8 or i8, but got {}", c.b.type(v).ToString());
}

// As i32, or kNoValue where it is left out or known to be zero. It has the type of the operand that
// it belongs to.
Expected<ValueId> ZeroPoint(OpContext& c, ValueId zero, ValueId operand) {
  if (zero == kNoValue) return kNoValue;
  if (c.b.type(zero).dtype != c.b.type(operand).dtype) {
    return c.Error("expected a zero point of {} like its operand, but got {}",
                   c.b.type(operand).dtype.ToString(), c.b.type(zero).ToString());
  }
  if (auto known = c.b.KnownInts(zero);
      known && std::all_of(known->begin(), known->end(), [](int64_t z) { return z == 0; })) {
    return kNoValue;
  }
  return c.Emit(OpKind::kCast, {zero}, {{"to", kI32}});
}

// Along an axis of each matrix, as i32: [..., 1, n] or [..., m, 1].
Expected<ValueId> SumAlong(OpContext& c, ValueId x, int from_end) {
  const int64_t axis = c.b.type(x).rank() - from_end;
  TN_ASSIGN_OR_RETURN(ValueId wide, c.Emit(OpKind::kCast, {x}, {{"to", kI32}}));
  return c.Emit(
      OpKind::kReduce, {wide},
      {{"kind", std::string("sum")}, {"axes", std::vector<int64_t>{axis}}, {"keepdims", true}});
}

// The length of the rows of `a`, as an i32 scalar.
Expected<ValueId> Depth(OpContext& c, ValueId a) {
  const int64_t rank = c.b.type(a).rank();
  TN_ASSIGN_OR_RETURN(ValueId k, c.Emit(OpKind::kShape, {a}, {{"start", rank - 1}, {"end", rank}}));
  TN_ASSIGN_OR_RETURN(k, c.Reshape(k, {}));
  return c.Emit(OpKind::kCast, {k}, {{"to", kI32}});
}

Expected<ValueId> Widened(OpContext& c, ValueId x, ValueId zero) {
  TN_ASSIGN_OR_RETURN(x, c.Emit(OpKind::kCast, {x}, {{"to", kI32}}));
  return zero == kNoValue ? x : c.Emit(OpKind::kSub, {x, zero});
}

// `zx` is a scalar of i32, that of the input `x`, or kNoValue. What the pads add holds the zero
// point itself: by the convolution where it is a number, else by a pad in front of it.
Expected<ValueId> ConvByWindows(OpContext& c, const IntegerOperands& at, ValueId x, ValueId zx,
                                ValueId w, Attrs attrs) {
  if (zx == kNoValue) return c.Emit(OpKind::kConv, {x, w}, std::move(attrs));
  const int64_t rank = c.Rank(at.a);
  const std::vector<int64_t> pads = attrs.GetInts("pads");
  if (const auto known = c.b.KnownInts(c.In(at.zero_a))) {
    attrs.Set("pad_value", static_cast<double>(known->at(0)));
  } else if (std::any_of(pads.begin(), pads.end(), [](int64_t p) { return p != 0; })) {
    std::vector<int64_t> cells;  // of all axes: two more in front of the begins and of the ends
    for (size_t side = 0; side < 2; ++side) {
      cells.insert(cells.end(), 2, 0);
      const auto first = pads.begin() + static_cast<long>(side) * (rank - 2);
      cells.insert(cells.end(), first, first + (rank - 2));
    }
    TN_ASSIGN_OR_RETURN(ValueId zero, c.Reshape(c.In(at.zero_a), {}));
    TN_ASSIGN_OR_RETURN(x,
                        c.Emit(OpKind::kPad, {x, zero}, {}, {{"pads", graph::ToElements(cells)}}));
    attrs.Set("pads", std::vector<int64_t>(pads.size(), 0));
  }
  TN_ASSIGN_OR_RETURN(ValueId product, c.Emit(OpKind::kConv, {x, w}, std::move(attrs)));
  TN_ASSIGN_OR_RETURN(ValueId sums, c.Emit(OpKind::kCast, {w}, {{"to", kI32}}));
  std::vector<int64_t> axes;
  for (int64_t i = 1; i < rank; ++i) axes.push_back(i);
  TN_ASSIGN_OR_RETURN(
      sums, c.Emit(OpKind::kReduce, {sums},
                   {{"kind", std::string("sum")}, {"axes", std::move(axes)}, {"keepdims", false}}));
  TN_ASSIGN_OR_RETURN(sums, c.Emit(OpKind::kMul, {sums, zx}));
  std::vector<Expr> shape(static_cast<size_t>(rank) - 1, IndexConst(1));
  shape[0] = c.b.type(w).dims[0];
  TN_ASSIGN_OR_RETURN(sums, c.Reshape(sums, std::move(shape)));
  return c.Emit(OpKind::kSub, {product, sums});
}

// Bytes with signs, and their zero point of i32.
struct Weights {
  ValueId w, zero;
};
Expected<Weights> Signed(OpContext& c, ValueId w, ValueId zero) {
  if (c.b.type(w).dtype.IsSigned()) return Weights{w, zero};
  const ValueId half = c.b.Scalar(DType::Int(32), 128);
  TN_ASSIGN_OR_RETURN(w, Widened(c, w, half));
  TN_ASSIGN_OR_RETURN(w, c.Emit(OpKind::kCast, {w}, {{"to", std::string("i8")}}));
  TN_ASSIGN_OR_RETURN(zero, c.Emit(OpKind::kSub, {zero, half}));
  return Weights{w, zero};
}

// Σ (x - zx) of each window: channels are added up first, so that windows have one.
Expected<ValueId> WindowSums(OpContext& c, ValueId x, ValueId zx, std::vector<int64_t> taps,
                             const Attrs& attrs) {
  TN_ASSIGN_OR_RETURN(x, Widened(c, x, zx));
  TN_ASSIGN_OR_RETURN(x, c.Emit(OpKind::kReduce, {x},
                                {{"kind", std::string("sum")},
                                 {"axes", std::vector<int64_t>{1}},
                                 {"keepdims", true}}));
  taps[0] = taps[1] = 1;
  int64_t count = 1;
  for (const int64_t t : taps) count *= t;
  const std::vector<int64_t> ones(static_cast<size_t>(count), 1);
  const DType i32 = DType::Int(32);
  const ValueId all = c.b.Constant("", {i32, graph::ToElements(taps)},
                                   graph::MakePayload(i32, std::span<const int64_t>(ones)));
  return c.Emit(OpKind::kConv, {x, all}, attrs);
}

// `zw` of i32 broadcasts to the result. There is one group.
Expected<ValueId> ConvBySums(OpContext& c, const IntegerOperands& at, ValueId x, ValueId zx,
                             ValueId zw, const std::vector<int64_t>& taps, const Attrs& attrs) {
  TN_ASSIGN_OR_RETURN(const Weights weights, Signed(c, c.In(at.b), zw));
  TN_ASSIGN_OR_RETURN(const ValueId y, ConvByWindows(c, at, x, zx, weights.w, attrs));
  if (const auto known = c.b.KnownInts(weights.zero);
      known && std::all_of(known->begin(), known->end(), [](int64_t z) { return z == 0; })) {
    return y;
  }
  TN_ASSIGN_OR_RETURN(ValueId sums, WindowSums(c, x, zx, taps, attrs));
  TN_ASSIGN_OR_RETURN(sums, c.Emit(OpKind::kMul, {sums, weights.zero}));
  return c.Emit(OpKind::kSub, {y, sums});
}

// The input with what the call pads it by, which stands for zero.
Expected<ValueId> PaddedWithZeros(OpContext& c, const IntegerOperands& at, bool has_zero_point,
                                  std::span<const PaddedAxis> by_call) {
  if (by_call.empty()) return c.In(at.a);
  const Formula f(c);
  const Val x = f.In(at.a);
  const Val padded =
      has_zero_point ? Padded(x, by_call, Reshape(f.In(at.zero_a), {})) : Padded(x, by_call, 0);
  TN_RETURN_IF_ERROR(f.Done());
  return padded.id();
}

Status ImportMatMulInteger(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 4));
  TN_ASSIGN_OR_RETURN(const Matrices m, AsMatrices(c));
  TN_ASSIGN_OR_RETURN(const ValueId product, IntegerProduct(c, m, {0, 1, 2, 3}));
  return SetProduct(c, m, product);
}

Status ImportConvInteger(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 4));
  TN_ASSIGN_OR_RETURN(const ValueId y, IntegerConv(c, {0, 1, 2, 3}));
  return c.SetOutput(0, y);
}

Status ImportDynamicQuantize(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(const DynamicallyQuantized x, DynamicallyQuantize(c, c.In(0)));
  TN_RETURN_IF_ERROR(c.SetOutput(0, x.q));
  TN_RETURN_IF_ERROR(c.SetOutput(1, x.scale));
  return c.SetOutput(2, x.zero);
}

constexpr OpRow kRows[] = {
    {"DynamicQuantizeLinear", 11, ImportDynamicQuantize},
    {"MatMulInteger", 10, ImportMatMulInteger},
    {"ConvInteger", 10, ImportConvInteger},
};

}  // namespace

Expected<DynamicallyQuantized> DynamicallyQuantize(OpContext& c, ValueId input) {
  const TensorType x = c.b.type(input);
  if (!(x.dtype == DType::Float(32)))
    return c.Error("expected an input of f32, but got {}", x.ToString());
  const ValueId none = c.Scalar(x.dtype, 0);
  // The last axis by itself: along it the others are reduced by vectors.
  auto end = [&](const char* kind, OpKind with_zero) -> Expected<ValueId> {
    ValueId v = input;
    for (int64_t rank = x.rank(); rank > 0; rank = rank > 1 ? 1 : 0) {
      std::vector<int64_t> axes;
      for (int64_t i = 0; i < std::max<int64_t>(rank - 1, 1); ++i) axes.push_back(i);
      TN_ASSIGN_OR_RETURN(
          v, c.Emit(OpKind::kReduce, {v},
                    {{"kind", std::string(kind)}, {"axes", std::move(axes)}, {"keepdims", false}}));
    }
    return c.Emit(with_zero, {v, none});
  };
  TN_ASSIGN_OR_RETURN(const ValueId most, end("max", OpKind::kMax));
  TN_ASSIGN_OR_RETURN(const ValueId least, end("min", OpKind::kMin));
  TN_ASSIGN_OR_RETURN(ValueId scale, c.Emit(OpKind::kSub, {most, least}));
  TN_ASSIGN_OR_RETURN(scale, c.Emit(OpKind::kDiv, {scale, c.Scalar(x.dtype, 255)}));
  TN_ASSIGN_OR_RETURN(const ValueId flat, c.Emit(OpKind::kEqual, {scale, none}));
  TN_ASSIGN_OR_RETURN(scale, c.Emit(OpKind::kWhere, {flat, c.Scalar(x.dtype, 1), scale}));
  auto rounded = [&](ValueId v) -> Expected<ValueId> {
    TN_ASSIGN_OR_RETURN(v, c.Emit(OpKind::kDiv, {v, scale}));
    return c.Emit(OpKind::kRound, {v});
  };
  auto to_bytes = [&](ValueId v) -> Expected<ValueId> {
    return c.Emit(OpKind::kCast, {v}, {{"to", std::string("u8")}});  // which saturates
  };
  TN_ASSIGN_OR_RETURN(ValueId zero, c.Emit(OpKind::kSub, {none, least}));
  TN_ASSIGN_OR_RETURN(zero, rounded(zero));
  TN_ASSIGN_OR_RETURN(ValueId q, rounded(input));
  TN_ASSIGN_OR_RETURN(q, c.Emit(OpKind::kAdd, {q, zero}));
  TN_ASSIGN_OR_RETURN(q, to_bytes(q));
  TN_ASSIGN_OR_RETURN(zero, to_bytes(zero));
  return DynamicallyQuantized{q, scale, zero};
}

Expected<ValueId> IntegerProduct(OpContext& c, const Matrices& m, const IntegerOperands& at) {
  return IntegerProduct(c, m.a, m.b, c.InOr(at.zero_a), c.InOr(at.zero_b));
}

Expected<ValueId> IntegerProduct(OpContext& c, ValueId a, ValueId b, ValueId zero_a,
                                 ValueId zero_b) {
  TN_RETURN_IF_ERROR(CheckBytes(c, a));
  TN_RETURN_IF_ERROR(CheckBytes(c, b));
  TN_ASSIGN_OR_RETURN(ValueId za, ZeroPoint(c, zero_a, a));
  TN_ASSIGN_OR_RETURN(ValueId zb, ZeroPoint(c, zero_b, b));
  if (za != kNoValue && c.b.type(za).rank() == 1) {  // one per row
    const Expr rows = c.b.type(za).dims[0];
    TN_ASSIGN_OR_RETURN(za, c.Reshape(za, {rows, IndexConst(1)}));
  }
  TN_ASSIGN_OR_RETURN(ValueId v, c.Emit(OpKind::kMatMul, {a, b}));
  const TensorType product = c.b.type(v);
  auto take_off = [&](ValueId zero, ValueId operand, int from_end) -> Status {
    TN_ASSIGN_OR_RETURN(ValueId sum, SumAlong(c, operand, from_end));
    TN_ASSIGN_OR_RETURN(sum, c.Emit(OpKind::kMul, {sum, zero}));
    TN_ASSIGN_OR_RETURN(v, c.Emit(OpKind::kSub, {v, sum}));
    return Ok();
  };
  if (za != kNoValue) TN_RETURN_IF_ERROR(take_off(za, b, 2));
  if (zb != kNoValue) TN_RETURN_IF_ERROR(take_off(zb, a, 1));
  if (za != kNoValue && zb != kNoValue) {
    TN_ASSIGN_OR_RETURN(ValueId both, Depth(c, a));
    TN_ASSIGN_OR_RETURN(both, c.Emit(OpKind::kMul, {both, za}));
    TN_ASSIGN_OR_RETURN(both, c.Emit(OpKind::kMul, {both, zb}));
    TN_ASSIGN_OR_RETURN(v, c.Emit(OpKind::kAdd, {v, both}));
  }
  TN_ASSIGN_OR_RETURN(const ValueId conformed, c.Conform(v, product.dims));
  if (conformed == kNoValue) {
    return c.Error("expected zero points that broadcast to {}, but the result is {}",
                   product.ToString(), c.b.type(v).ToString());
  }
  return conformed;
}

Expected<ValueId> IntegerConv(OpContext& c, const IntegerOperands& at) {
  TN_RETURN_IF_ERROR(CheckBytes(c, c.In(at.a)));
  TN_RETURN_IF_ERROR(CheckBytes(c, c.In(at.b)));
  TN_ASSIGN_OR_RETURN(ConvAttrs conv, ReadConv(c, at.b));
  TN_RETURN_IF_ERROR(c.FixOne(at.zero_a));
  TN_ASSIGN_OR_RETURN(ValueId zx, ZeroPoint(c, c.InOr(at.zero_a), c.In(at.a)));
  TN_ASSIGN_OR_RETURN(ValueId zw, ZeroPoint(c, c.InOr(at.zero_b), c.In(at.b)));
  if (zx != kNoValue) {
    if (graph::StaticCount(c.Dims(at.zero_a)) != 1)
      return c.Error("expected one zero point of the input, but got {}",
                     c.Type(at.zero_a).ToString());
    TN_ASSIGN_OR_RETURN(zx, c.Reshape(zx, {}));
  }
  TN_ASSIGN_OR_RETURN(ValueId x, PaddedWithZeros(c, at, zx != kNoValue, conv.by_call));
  if (zw == kNoValue) return ConvByWindows(c, at, x, zx, c.In(at.b), std::move(conv.attrs));
  const TensorType& zeros = c.Type(at.zero_b);
  if (graph::StaticCount(zeros.dims) == 1) {
    TN_ASSIGN_OR_RETURN(zw, c.Reshape(zw, {}));
  } else if (zeros.rank() != 1 || graph::ProveDifferent(zeros.dims[0], c.Dims(at.b)[0])) {
    return c.Error("expected a zero point of the weights, or one for each map of {}, but got {}",
                   c.Type(at.b).ToString(), zeros.ToString());
  }
  const std::optional<std::vector<int64_t>> taps = c.Type(at.b).StaticDims();
  const bool by_sums = taps && conv.attrs.GetInt("group", 1) == 1;
  if (c.b.type(zw).rank() == 1) {  // one for each map, which is axis 1 of the result
    std::vector<Expr> shape(static_cast<size_t>(c.Rank(at.b)) - (by_sums ? 1 : 0), IndexConst(1));
    shape[0] = c.Dims(at.zero_b)[0];
    TN_ASSIGN_OR_RETURN(zw, c.Reshape(zw, std::move(shape)));
  }
  if (by_sums) return ConvBySums(c, at, x, zx, zw, *taps, conv.attrs);
  TN_ASSIGN_OR_RETURN(x, Widened(c, x, zx));
  TN_ASSIGN_OR_RETURN(ValueId w, Widened(c, c.In(at.b), zw));
  return c.Emit(OpKind::kConv, {x, w}, std::move(conv.attrs));
}

std::span<const OpRow> IntegerRows() { return kRows; }

}  // namespace tenon::onnx
