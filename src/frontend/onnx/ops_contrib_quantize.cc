// Quantised operators of the domain com.microsoft, beside those of the default one
// (ops_quantize.cc).
//
// Products are those of integers (ops_integer.cc), times the scales of both operands. What is no
// product is computed on the numbers that the bytes stand for, in one kernel that reads bytes and
// writes bytes.
#include <functional>

#include "frontend/onnx/formula.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/quantize.h"
#include "frontend/onnx/window.h"

namespace tenon::onnx {
namespace {

// ---- Products ----

// A number, or one for each column of a product.
Val PerColumn(const Val& v) { return v && graph::StaticCount(v.dims()) == 1 ? Reshape(v, {}) : v; }

// The scales of both operands, times one another: wide, since they are multiplied by sums that a
// narrow type does not reach.
Val ScaleOfProduct(const Val& a_scale, const Val& b_scale) {
  return Widened(PerColumn(a_scale)) * Widened(PerColumn(b_scale));
}

// The product as floats of the type of `b_scale`: times the scales, and a bias.
Val Scaled(const Val& sum, const Val& a_scale, const Val& b_scale, const Val& bias) {
  const Val scale = ScaleOfProduct(a_scale, b_scale);
  const Val y = Cast(sum, scale.dtype()) * scale;
  return Cast(bias ? y + Widened(bias) : y, b_scale.dtype());
}

// Inputs: a, b, scales of both, zero points of both, a bias.
Status ImportMatMulIntegerToFloat(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(4, 7));
  TN_ASSIGN_OR_RETURN(const Matrices m, AsMatrices(c));
  TN_ASSIGN_OR_RETURN(const ValueId sum, IntegerProduct(c, m, {0, 1, 4, 5}));
  const Formula f(c);
  const Val y = Scaled(f.Of(sum), f.In(2), f.In(3), f.In(6));
  TN_RETURN_IF_ERROR(f.Done());
  return SetProduct(c, m, y.id());
}

// Inputs: a of f32, b, its scale, its zero point, a bias.
Status ImportDynamicQuantizeMatMul(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(3, 5));
  TN_ASSIGN_OR_RETURN(const Matrices m, AsMatrices(c));
  TN_ASSIGN_OR_RETURN(const DynamicallyQuantized a, DynamicallyQuantize(c, m.a));
  TN_ASSIGN_OR_RETURN(const ValueId sum, IntegerProduct(c, a.q, m.b, a.zero, c.InOr(3)));
  const Formula f(c);
  const Val y = Scaled(f.Of(sum), f.Of(a.scale), f.In(2), f.In(4));
  TN_RETURN_IF_ERROR(f.Done());
  return SetProduct(c, m, y.id());
}

// Inputs: a, scale, zero; b, scale, zero; a bias in steps of the product; the result's scale, zero.
Status ImportQGemm(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(6, 9));
  TN_ASSIGN_OR_RETURN(const double alpha, c.Float("alpha", 1));
  TN_ASSIGN_OR_RETURN(const bool trans_a, c.Bool("transA", false));
  TN_ASSIGN_OR_RETURN(const bool trans_b, c.Bool("transB", false));
  if (c.Rank(0) != 2 || c.Rank(3) != 2) {
    return c.Error("expected two matrices, but got {} and {}", c.Type(0).ToString(),
                   c.Type(3).ToString());
  }
  const Formula f(c);
  const Val a = trans_a ? Swap(f.In(0), 0, 1) : f.In(0),
            b = trans_b ? Swap(f.In(3), 0, 1) : f.In(3);
  TN_RETURN_IF_ERROR(f.Done());
  TN_ASSIGN_OR_RETURN(const ValueId sum, IntegerProduct(c, a.id(), b.id(), c.InOr(2), c.InOr(5)));
  const Val product = f.Of(sum), whole = c.Has(6) ? product + f.In(6) : product;
  const Val scale = ScaleOfProduct(f.In(1), f.In(4)) * alpha;
  const Val y = Cast(whole, scale.dtype()) * scale;
  if (!c.Has(7)) return f.Result(Cast(y, c.Type(1).dtype));
  const DType type = c.Has(8) ? c.Type(8).dtype : DType::UInt(8);
  return f.Result(Quantized(y / Widened(PerColumn(f.In(7))), PerColumn(f.In(8)), type));
}

// ---- Element by element ----

// One number of the whole tensor.
Val Whole(const Val& v) { return v ? Reshape(v, {}) : v; }

// The numbers of input `i`, whose scale and zero point follow it.
Val NumbersAt(const Formula& f, size_t i) {
  return Dequantized(f.In(i), Whole(f.In(i + 1)), Whole(f.In(i + 2)));
}

// As bytes of `type` by the scale of input `i` and the zero point behind it.
Val BytesBy(const Formula& f, const Val& x, size_t i, DType type) {
  return Quantized(x / Whole(f.In(i)), Whole(f.In(i + 1)), type);
}

Status CheckByteInput(const OpContext& c, size_t i) {
  const DType type = c.Type(i).dtype;
  if (type.IsInt() && type.bits == 8) return Ok();
  return c.Error("expected input {} to be u8 or i8, but got {}", i, c.Type(i).ToString());
}

Status ImportQLinearBinary(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(7, 8, {2, 5}));
  for (size_t i : {0, 3}) TN_RETURN_IF_ERROR(CheckByteInput(c, i));
  const Formula f(c);
  const Val y = f.Emit(c.row.op, {NumbersAt(f, 0), NumbersAt(f, 3)});
  return f.Result(BytesBy(f, y, 6, c.Type(0).dtype));
}

// A function of one byte: of the 256 that there are, which are computed once, while compiling where
// scales are constants, and one of which each element then is.
Status ByTable(OpContext& c, const std::function<Val(const Val& number)>& function) {
  TN_RETURN_IF_ERROR(CheckByteInput(c, 0));
  const Formula f(c);
  const DType type = c.Type(0).dtype;
  const double least = type.IsSigned() ? -128 : 0;
  const Val codes = Cast(f.Iota(IndexConst(256)) + least, type);
  const Val numbers = Dequantized(codes, Whole(f.In(1)), Whole(f.In(2)));
  const Val table = BytesBy(f, function(numbers), 3, type);
  return f.Result(Gather(table, Cast(f.In(0), DType::Int(32)) - least, 0));
}

Status ImportQLinearSigmoid(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(4, 5, {2}));
  return ByTable(c, [](const Val& x) { return Sigmoid(x); });
}

Status ImportQLinearLeakyRelu(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(4, 5, {2}));
  TN_ASSIGN_OR_RETURN(const double alpha, c.Float("alpha", 0.01));
  return ByTable(c, [alpha](const Val& x) { return Where(x < 0, x * alpha, x); });
}

// Inputs: the result's scale and zero point, then a tensor, its scale and its zero point, …
Status ImportQLinearConcat(OpContext& c) {
  const size_t given = c.num_inputs();
  if (given < 5 || (given - 2) % 3 != 0)
    return c.Error(
        "expected a scale, a zero point and three inputs for each tensor, but got {} inputs",
        given);
  TN_RETURN_IF_ERROR(c.Arity(given, static_cast<int>(given)));
  TN_ASSIGN_OR_RETURN(const int64_t axis, c.AxisAttr("axis", std::nullopt, c.Rank(2)));
  const Formula f(c);
  std::vector<Val> parts;
  for (size_t i = 2; i < given; i += 3) {
    TN_RETURN_IF_ERROR(CheckByteInput(c, i));
    const bool same = c.In(i + 1) == c.In(0) && c.In(i + 2) == c.In(1);
    parts.push_back(same ? f.In(i) : BytesBy(f, NumbersAt(f, i), 0, c.Type(1).dtype));
  }
  return f.Result(Concat(parts, axis));
}

// Of operator set 13 along one axis; before, along all from `axis` on.
Status ImportQLinearSoftmax(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(5, 5, {2}));
  TN_RETURN_IF_ERROR(CheckByteInput(c, 0));
  TN_ASSIGN_OR_RETURN(const int64_t set, c.Int("opset", std::nullopt));
  TN_ASSIGN_OR_RETURN(const int64_t axis, c.AxisAttr("axis", -1, c.Rank(0)));
  const Formula f(c);
  const Dims dims = c.Dims(0);
  Val x = NumbersAt(f, 0);
  if (set < 13) {
    const std::span<const Expr> all(dims);
    const auto at = static_cast<size_t>(axis);
    x = Reshape(x, {graph::DimProduct(all.first(at)), graph::DimProduct(all.subspan(at))});
  }
  const Val y = Reshape(Softmax(x, set < 13 ? 1 : axis), dims);
  return f.Result(BytesBy(f, y, 3, c.Type(0).dtype));
}

// ---- Pools ----

// [N, d…, C] as [N, C, d…], and back.
Val ChannelsSecond(const Val& x) {
  Axes perm = AxesFrom(x, 0);
  if (perm.size() < 3) return x;
  perm.insert(perm.begin() + 1, perm.back());
  perm.pop_back();
  return Transpose(x, perm);
}
Val ChannelsLast(const Val& x) {
  Axes perm = AxesFrom(x, 0);
  if (perm.size() < 3) return x;
  perm.push_back(perm[1]);
  perm.erase(perm.begin() + 1);
  return Transpose(x, perm);
}

struct PoolAttrs {
  Attrs attrs;
  std::vector<PaddedAxis> by_call;
};

Expected<PoolAttrs> ReadPool(OpContext& c, bool channels_last) {
  if (c.Rank(0) < 3)
    return c.Error("expected an input of rank 3 or more, but got {}", c.Type(0).ToString());
  TN_ASSIGN_OR_RETURN(WindowAttrs window, ReadWindow(c, {}, channels_last ? 1 : 2));
  TN_ASSIGN_OR_RETURN(const bool ceil_mode, c.Bool("ceil_mode", false));
  return PoolAttrs{{{"kernel", window.kernel},
                    {"strides", window.strides},
                    {"dilations", window.dilations},
                    {"pads", window.pads},
                    {"ceil_mode", ceil_mode && !window.auto_pad}},
                   std::move(window.by_call)};
}

Status ImportQLinearAveragePool(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(4, 5, {2}));
  TN_RETURN_IF_ERROR(CheckByteInput(c, 0));
  TN_ASSIGN_OR_RETURN(const bool last, c.Bool("channels_last", false));
  TN_ASSIGN_OR_RETURN(const bool count_pads, c.Bool("count_include_pad", false));
  TN_ASSIGN_OR_RETURN(PoolAttrs pool, ReadPool(c, last));
  const bool by_call = !pool.by_call.empty();
  pool.attrs.Set("count_include_pad", count_pads || by_call);
  const Formula f(c);
  const auto mean = [&](const Val& v) {
    const Val padded = Padded(v, pool.by_call, 0);
    return f.Emit(OpKind::kAvgPool, {last ? ChannelsSecond(padded) : padded}, pool.attrs);
  };
  const Val x = NumbersAt(f, 0);
  Val y = mean(x);
  // Over all places, also those that the call adds.
  if (by_call && !count_pads) y = y / mean(Expand(f.Number(x.dtype(), 1), x.dims()));
  y = BytesBy(f, y, 3, c.Type(0).dtype);
  return f.Result(last ? ChannelsLast(y) : y);
}

Status ImportQLinearGlobalAveragePool(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(4, 5, {2}));
  TN_RETURN_IF_ERROR(CheckByteInput(c, 0));
  TN_ASSIGN_OR_RETURN(const bool last, c.Bool("channels_last", false));
  if (c.Rank(0) < 3)
    return c.Error("expected an input of rank 3 or more, but got {}", c.Type(0).ToString());
  const Formula f(c);
  const Val x = NumbersAt(f, 0);
  Axes axes = AxesFrom(x, last ? 1 : 2);
  if (last) axes.pop_back();
  return f.Result(BytesBy(f, Mean(x, axes), 3, c.Type(0).dtype));
}

Status ImportNhwcMaxPool(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_RETURN_IF_ERROR(CheckByteInput(c, 0));
  TN_ASSIGN_OR_RETURN(PoolAttrs pool, ReadPool(c, true));
  const Formula f(c);
  const Val x = f.In(0);
  const double lowest = x.dtype().IsSigned() ? -128 : 0;
  const Val padded = Padded(x, pool.by_call, lowest);
  return f.Result(
      ChannelsLast(f.Emit(OpKind::kMaxPool, {ChannelsSecond(padded)}, std::move(pool.attrs))));
}

constexpr char kContrib[] = "com.microsoft";
constexpr OpRow kRows[] = {
    {.name = "MatMulIntegerToFloat",
     .since = 1,
     .import = ImportMatMulIntegerToFloat,
     .domain = kContrib},
    {.name = "DynamicQuantizeMatMul",
     .since = 1,
     .import = ImportDynamicQuantizeMatMul,
     .domain = kContrib},
    {.name = "QGemm", .since = 1, .import = ImportQGemm, .domain = kContrib},
    {"QLinearAdd", 1, ImportQLinearBinary, OpKind::kAdd, kContrib},
    {"QLinearMul", 1, ImportQLinearBinary, OpKind::kMul, kContrib},
    {.name = "QLinearSigmoid", .since = 1, .import = ImportQLinearSigmoid, .domain = kContrib},
    {.name = "QLinearLeakyRelu", .since = 1, .import = ImportQLinearLeakyRelu, .domain = kContrib},
    {.name = "QLinearSoftmax", .since = 1, .import = ImportQLinearSoftmax, .domain = kContrib},
    {.name = "QLinearConcat", .since = 1, .import = ImportQLinearConcat, .domain = kContrib},
    {.name = "QLinearAveragePool",
     .since = 1,
     .import = ImportQLinearAveragePool,
     .domain = kContrib},
    {.name = "QLinearGlobalAveragePool",
     .since = 1,
     .import = ImportQLinearGlobalAveragePool,
     .domain = kContrib},
    {.name = "NhwcMaxPool", .since = 1, .import = ImportNhwcMaxPool, .domain = kContrib},
};

}  // namespace

std::span<const OpRow> ContribQuantizeRows() { return kRows; }

}  // namespace tenon::onnx
