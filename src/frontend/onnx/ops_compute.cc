// Products, convolutions, pools and softmax.
//
// ONNX has several spellings for each of these, which are brought to the graph's one: vectors in a
// MatMul become matrices with an axis of 1 that is taken away again; Gemm is a product and a sum,
// with its factors multiplied in where they are not 1; auto_pad becomes pads; pools over more or
// fewer than two axes, and normalisations over whatever axes, are written with what the graph has.
//
//   Gemm(x, w, b) {alpha: 1, beta: 1, transB: 1}
//
// becomes
//
//   %7: f32[1, 64] = matmul(%0, %1) {trans_b: true}
//   %8: f32[1, 64] = add(%7, %2)
//
// What cannot be said in the graph is refused by the node's name, with what it would need.

#include <algorithm>

#include "frontend/onnx/call_sizes.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/window.h"

namespace tenon::onnx {

namespace {

Status ImportMatMul(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 2));
  TN_ASSIGN_OR_RETURN(const Matrices m, AsMatrices(c));
  TN_ASSIGN_OR_RETURN(ValueId product, c.Emit(OpKind::kMatMul, {m.a, m.b}));
  return SetProduct(c, m, product);
}

Status ImportGemm(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(c.opset < 11 ? 3 : 2, 3));
  TN_ASSIGN_OR_RETURN(double alpha, c.Float("alpha", 1));
  TN_ASSIGN_OR_RETURN(double beta, c.Float("beta", 1));
  TN_ASSIGN_OR_RETURN(bool trans_a, c.Bool("transA", false));
  TN_ASSIGN_OR_RETURN(bool trans_b, c.Bool("transB", false));
  if (c.opset < 7) TN_RETURN_IF_ERROR(c.Bool("broadcast", false));  // which C's shape says
  const DType dtype = c.Type(0).dtype;
  if (c.Rank(0) != 2 || c.Rank(1) != 2) {
    return c.Error("expected two matrices, but got {} and {}", c.Type(0).ToString(),
                   c.Type(1).ToString());
  }
  if (dtype.IsInt() && (alpha != std::trunc(alpha) || beta != std::trunc(beta))) {
    return c.Error("expected whole alpha and beta for {}, but got {} and {}", dtype.ToString(),
                   alpha, beta);
  }
  const Formula f(c);
  const ValueId v = ScaledMatMul(f.In(0), f.In(1), trans_a, trans_b, alpha).id();
  TN_RETURN_IF_ERROR(f.Done());
  if (!c.Has(2)) return c.SetOutput(0, v);
  ValueId bias = c.In(2);
  if (beta != 1) {
    TN_ASSIGN_OR_RETURN(bias, c.Emit(OpKind::kMul, {bias, c.Scalar(dtype, beta)}));
  }
  // The sum has the product's shape; of an open one the call sees to it.
  TN_ASSIGN_OR_RETURN(ValueId sum, c.Emit(OpKind::kAdd, {v, bias}));
  TN_ASSIGN_OR_RETURN(const ValueId conformed, c.Conform(sum, c.b.type(v).dims));
  if (conformed == kNoValue) {
    return c.Error("expected C to broadcast to {}, but got {}", c.b.type(v).ToString(),
                   c.Type(2).ToString());
  }
  return c.SetOutput(0, conformed);
}

Status ImportConv(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 3));
  TN_ASSIGN_OR_RETURN(ConvAttrs conv, ReadConv(c));
  const Formula f(c);
  const Val x = Padded(f.In(0), conv.by_call, 0);
  TN_RETURN_IF_ERROR(f.Done());
  std::vector<ValueId> inputs = {x.id(), c.In(1)};
  if (c.Has(2)) inputs.push_back(c.In(2));
  return c.Result(OpKind::kConv, std::move(inputs), std::move(conv.attrs));
}

// A mean without what was padded is that over all, times all places over those inside.
Status PooledByCall(OpContext& c, std::span<const PaddedAxis> by_call, bool only_inside,
                    Attrs attrs) {
  const Formula f(c);
  const Val x = f.In(0);
  const bool average = c.row.op == OpKind::kAvgPool;
  const auto pooled = [&](const Val& v) {
    return f.Emit(c.row.op, {Padded(v, by_call, average ? 0 : *AsFloat(LowestOf(v.dtype())))},
                  attrs);
  };
  if (!only_inside) return f.Result(pooled(x));
  attrs.Set("count_include_pad", true);
  const Val wide = Widened(x);
  const Val inside = pooled(Expand(f.Number(wide.dtype(), 1), wide.dims()));
  return f.Result(Cast(pooled(wide) / inside, x.dtype()));
}

// Places in what was padded, as places in `x`. The last axis runs fastest, or, column_major, the
// first spatial one.
Val PlacesInside(Val places, const Val& x, const Val& padded, std::span<const PaddedAxis> by_call,
                 bool column_major) {
  const Formula& f = x.formula();
  Axes axes = AxesFrom(x, 2);
  if (!column_major) std::reverse(axes.begin(), axes.end());
  Val inside = f.Number(DType::Int(64), 0), step = f.Number(DType::Int(64), 1);
  for (int64_t axis : axes) {
    const Val size = Size(padded, axis);
    Val at = Mod(places, size);
    places = places / size;
    for (const PaddedAxis& a : by_call) {
      if (a.axis == axis) at = at - NumberOf(f, a.before);
    }
    inside = inside + at * step;
    step = step * Size(x, axis);
  }
  return inside + places * step;
}

// The largest elements and where they are.
Status MaxAndPlaces(OpContext& c, std::span<const PaddedAxis> by_call, bool column_major,
                    Attrs attrs) {
  attrs.Set("column_major", column_major);
  const Formula f(c);
  const Val x = f.In(0), padded = Padded(x, by_call, *AsFloat(LowestOf(x.dtype())));
  const std::vector<Val> y = f.EmitAll(OpKind::kMaxPool, 2, {padded}, std::move(attrs));
  if (y.size() < 2) return f.Done();
  return f.Result(
      {y[0], by_call.empty() ? y[1] : PlacesInside(y[1], x, padded, by_call, column_major)});
}

Status ImportPool(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  if (c.Rank(0) < 3)
    return c.Error("expected an input of rank 3 or more, but got {}", c.Type(0).ToString());
  TN_ASSIGN_OR_RETURN(const WindowAttrs window, ReadWindow(c, {}));
  TN_ASSIGN_OR_RETURN(bool ceil_mode, c.Bool("ceil_mode", false));
  Attrs attrs = {{"kernel", window.kernel},
                 {"strides", window.strides},
                 {"dilations", window.dilations},
                 {"pads", window.pads}};
  // With auto_pad the specification's sizes are the same for both modes.
  attrs.Set("ceil_mode", ceil_mode && !window.auto_pad);
  bool only_inside = false;
  if (c.row.op == OpKind::kAvgPool) {
    TN_ASSIGN_OR_RETURN(const bool count_pads, c.Bool("count_include_pad", false));
    attrs.Set("count_include_pad", count_pads);
    only_inside = !count_pads;
  } else {
    TN_ASSIGN_OR_RETURN(const bool column_major, c.Bool("storage_order", false));
    if (c.Wants(1)) return MaxAndPlaces(c, window.by_call, column_major, std::move(attrs));
  }
  if (!window.by_call.empty())
    return PooledByCall(c, window.by_call, only_inside, std::move(attrs));
  return c.Result(c.row.op, {c.In(0)}, std::move(attrs));
}

Status ImportGlobalPool(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  if (c.Rank(0) < 2)
    return c.Error("expected an input of rank 2 or more, but got {}", c.Type(0).ToString());
  std::vector<int64_t> axes;
  for (int64_t i = 2; i < c.Rank(0); ++i) axes.push_back(i);
  const bool average = std::string_view(c.row.name) == "GlobalAveragePool";
  return c.Result(
      OpKind::kReduce, {c.In(0)},
      {{"kind", std::string(average ? "mean" : "max")}, {"axes", axes}, {"keepdims", true}});
}

Status ImportSoftmax(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(int64_t axis, c.AxisAttr("axis", -1, c.Rank(0)));
  return c.Result(c.row.op, {c.In(0)}, {{"axis", axis}});
}

// Before opset 13 the axes from `axis` on are normalised together, as one.
Status ImportSoftmax1(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(int64_t axis, c.AxisAttr("axis", 1, c.Rank(0), true));
  const std::vector<Expr> dims = c.Dims(0);
  const std::span<const Expr> all(dims);
  const size_t at = static_cast<size_t>(axis);
  if (at + 1 == dims.size()) return c.Result(c.row.op, {c.In(0)}, {{"axis", axis}});
  TN_ASSIGN_OR_RETURN(ValueId flat, c.Reshape(c.In(0), {graph::DimProduct(all.first(at)),
                                                        graph::DimProduct(all.subspan(at))}));
  TN_ASSIGN_OR_RETURN(ValueId v, c.Emit(c.row.op, {flat}, {{"axis", int64_t{1}}}));
  TN_ASSIGN_OR_RETURN(v, c.Reshape(v, dims));
  return c.SetOutput(0, v);
}

constexpr OpRow kRows[] = {
    {"MatMul", 1, ImportMatMul},
    {"Gemm", 1, ImportGemm},
    {"Conv", 1, ImportConv},
    {"MaxPool", 1, ImportPool, OpKind::kMaxPool},
    {"AveragePool", 1, ImportPool, OpKind::kAvgPool},
    {"GlobalAveragePool", 1, ImportGlobalPool},
    {"GlobalMaxPool", 1, ImportGlobalPool},
    {"Softmax", 1, ImportSoftmax1, OpKind::kSoftmax},
    {"Softmax", 13, ImportSoftmax, OpKind::kSoftmax},
    {"LogSoftmax", 1, ImportSoftmax1, OpKind::kLogSoftmax},
    {"LogSoftmax", 13, ImportSoftmax, OpKind::kLogSoftmax},
};

}  // namespace

Expected<Matrices> AsMatrices(OpContext& c, size_t left, size_t right) {
  std::vector<Expr> a = c.Dims(left), b = c.Dims(right);
  if (a.empty() || b.empty())
    return c.Error("expected tensors of rank 1 or more, but got a scalar");
  Matrices m{c.In(left), c.In(right), a.size() == 1, b.size() == 1};
  if (m.row) {
    TN_ASSIGN_OR_RETURN(m.a, c.Reshape(m.a, {IndexConst(1), a[0]}));
  }
  if (m.column) {
    TN_ASSIGN_OR_RETURN(m.b, c.Reshape(m.b, {b[0], IndexConst(1)}));
  }
  return m;
}

Status SetProduct(OpContext& c, const Matrices& m, ValueId product) {
  std::vector<Expr> dims = c.b.type(product).dims;
  if (m.column) dims.pop_back();
  if (m.row) dims.erase(dims.end() - (m.column ? 1 : 2));
  TN_ASSIGN_OR_RETURN(product, c.Reshape(product, std::move(dims)));
  return c.SetOutput(0, product);
}

std::span<const OpRow> ComputeRows() { return kRows; }

}  // namespace tenon::onnx
