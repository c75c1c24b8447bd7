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
#include <cmath>
#include <limits>

#include "frontend/onnx/call_sizes.h"
#include "frontend/onnx/kernel_shape.h"
#include "frontend/onnx/ops.h"

namespace tenon::onnx {

using graph::DimAdd;
using graph::DimMul;
using graph::DimSub;

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
  TN_ASSIGN_OR_RETURN(ValueId v, c.Emit(OpKind::kMatMul, {c.In(0), c.In(1)},
                                        {{"trans_a", trans_a}, {"trans_b", trans_b}}));
  if (alpha != 1) {
    TN_ASSIGN_OR_RETURN(v, c.Emit(OpKind::kMul, {v, c.Scalar(dtype, alpha)}));
  }
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

// An axis of the first input that is padded before the window moves over it, since by how much only
// the call knows.
struct PaddedAxis {
  int64_t axis;
  Expr before, size;  // of the padded axis
};
Val Padded(Val x, std::span<const PaddedAxis> axes, double value) {
  for (const PaddedAxis& a : axes)
    x = Cut(x, a.axis, -NumberOf(x.formula(), a.before), a.size, value);
  return x;
}
// With `by_call` null such axes are errors.
Expected<WindowAttrs> ReadWindowByCall(OpContext& c, std::vector<int64_t> kernel, size_t first_axis,
                                       std::vector<PaddedAxis>* by_call);
Expected<Attrs> ReadConvByCall(OpContext& c, size_t weight, std::vector<PaddedAxis>* by_call);

Status ImportConv(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 3));
  std::vector<PaddedAxis> by_call;
  TN_ASSIGN_OR_RETURN(Attrs attrs, ReadConvByCall(c, 1, &by_call));
  const Formula f(c);
  const Val x = Padded(f.In(0), by_call, 0);
  TN_RETURN_IF_ERROR(f.Done());
  std::vector<ValueId> inputs = {x.id(), c.In(1)};
  if (c.Has(2)) inputs.push_back(c.In(2));
  return c.Result(OpKind::kConv, std::move(inputs), std::move(attrs));
}

// What is less than all others of a type.
double LowestOf(DType type) {
  if (type.IsFloat()) return -std::numeric_limits<double>::infinity();
  return type.IsSigned() ? -std::ldexp(1, type.bits - 1) : 0;
}

// A mean without what was padded is that over all, times all places over those inside.
Status PooledByCall(OpContext& c, std::span<const PaddedAxis> by_call, bool only_inside,
                    Attrs attrs) {
  const Formula f(c);
  const Val x = f.In(0);
  const bool average = c.row.op == OpKind::kAvgPool;
  const auto pooled = [&](const Val& v) {
    return f.Emit(c.row.op, {Padded(v, by_call, average ? 0 : LowestOf(v.dtype()))}, attrs);
  };
  if (!only_inside) return f.Result(pooled(x));
  attrs.Set("count_include_pad", true);
  const Val wide = Widened(x);
  const Val inside = pooled(Expand(f.Number(wide.dtype(), 1), wide.dims()));
  return f.Result(Cast(pooled(wide) / inside, x.dtype()));
}

Status ImportPool(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  if (c.Rank(0) < 3)
    return c.Error("expected an input of rank 3 or more, but got {}", c.Type(0).ToString());
  const bool average = c.row.op == OpKind::kAvgPool, has_places = !average && c.Wants(1);
  std::vector<PaddedAxis> by_call;
  TN_ASSIGN_OR_RETURN(WindowAttrs window,
                      ReadWindowByCall(c, {}, 2, has_places ? nullptr : &by_call));
  TN_ASSIGN_OR_RETURN(bool ceil_mode, c.Bool("ceil_mode", false));
  Attrs attrs = {{"kernel", window.kernel},
                 {"strides", window.strides},
                 {"dilations", window.dilations},
                 {"pads", window.pads}};
  // With auto_pad the specification's sizes are the same for both modes.
  attrs.Set("ceil_mode", ceil_mode && !window.auto_pad);
  if (average) {
    TN_ASSIGN_OR_RETURN(bool count_pads, c.Bool("count_include_pad", false));
    attrs.Set("count_include_pad", count_pads);
    if (!by_call.empty()) return PooledByCall(c, by_call, !count_pads, std::move(attrs));
  } else {
    TN_ASSIGN_OR_RETURN(bool column_major, c.Bool("storage_order", false));
    if (!by_call.empty()) return PooledByCall(c, by_call, false, std::move(attrs));
    if (has_places) {
      attrs.Set("column_major", column_major);
      TN_ASSIGN_OR_RETURN(std::vector<ValueId> results,
                          c.EmitAll(OpKind::kMaxPool, 2, {c.In(0)}, std::move(attrs)));
      TN_RETURN_IF_ERROR(c.SetOutput(0, results[0]));
      return c.SetOutput(1, results[1]);
    }
  }
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

// Padding that keeps ceil(dim / stride) windows, the odd element at the end (upper) or the
// beginning. Beside a stride it depends on the size of the axis.
Status SamePads(OpContext& c, bool upper, size_t first_axis, WindowAttrs* w,
                std::vector<PaddedAxis>* by_call) {
  const size_t n = w->kernel.size();
  w->pads.assign(2 * n, 0);
  for (size_t i = 0; i < n; ++i) {
    const int64_t extent = (w->kernel[i] - 1) * w->dilations[i] + 1;
    const size_t axis = i + first_axis;
    const Expr dim = c.Dims(0)[axis], stride = IndexConst(w->strides[i]), one = IndexConst(1);
    Expr total = IndexConst(extent - 1);
    if (w->strides[i] != 1) {
      const Expr last = DimMul(DimSub(graph::DimCeilDiv(dim, stride), one), stride);
      total = graph::DimMax(DimSub(DimAdd(last, IndexConst(extent)), dim), IndexConst(0));
    }
    if (const std::optional<int64_t> known = AsInt(total)) {
      w->pads[i] = upper ? *known / 2 : *known - *known / 2;
      w->pads[n + i] = *known - w->pads[i];
    } else if (by_call) {
      const Expr before = graph::DimFloorDiv(upper ? total : DimAdd(total, one), IndexConst(2));
      by_call->push_back({static_cast<int64_t>(axis), before, DimAdd(dim, total)});
    } else {
      return c.Error("auto_pad with a stride needs a known size of axis {}; give the input's shape",
                     axis);
    }
  }
  return Ok();
}

Status CheckEntries(const OpContext& c, const char* name, const std::vector<int64_t>& list,
                    size_t count, int64_t least) {
  constexpr int64_t kMost = int64_t{1} << 31;
  if (list.size() != count)
    return c.Error("expected {} entries in {}, but got {}", count, name, list.size());
  for (int64_t x : list) {
    if (x < least || x > kMost)
      return c.Error("expected {} in {}..{}, but got {}", name, least, kMost,
                     ToString(AttrValue(list)));
  }
  return Ok();
}

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

Status FixKernel(OpContext& c, size_t weight) {
  TN_ASSIGN_OR_RETURN(const auto kernel, c.Ints("kernel_shape"));
  for (size_t i = 0; kernel && i < kernel->size(); ++i)
    TN_RETURN_IF_ERROR(c.Fix(weight, static_cast<int64_t>(i) + 2, (*kernel)[i]));
  return Ok();
}

Status CheckKernel(const OpContext& c, const std::optional<std::vector<int64_t>>& kernel_shape,
                   std::span<const Expr> kernel) {
  if (!kernel_shape ||
      std::equal(kernel.begin(), kernel.end(), kernel_shape->begin(), kernel_shape->end(),
                 [](const Expr& k, int64_t n) { return AsInt(k) == n; }))
    return Ok();
  return c.Error("expected kernel_shape {} as the weight has, but got {}", graph::DimsText(kernel),
                 ToString(AttrValue(*kernel_shape)));
}

Expected<Attrs> ReadConv(OpContext& c, size_t weight) { return ReadConvByCall(c, weight, nullptr); }

namespace {

Expected<Attrs> ReadConvByCall(OpContext& c, size_t weight, std::vector<PaddedAxis>* by_call) {
  if (c.Rank(0) < 3 || c.Rank(weight) != c.Rank(0)) {
    return c.Error(
        "expected an input of rank 3 or more and a weight of the same rank, but got {} and {}",
        c.Type(0).ToString(), c.Type(weight).ToString());
  }
  TN_RETURN_IF_ERROR(FixKernel(c, weight));
  const std::vector<Expr>& w = c.Dims(weight);
  std::optional<std::vector<int64_t>> kernel =
      TensorType{c.Type(weight).dtype, {w.begin() + 2, w.end()}}.StaticDims();
  if (!kernel) {  // nothing but this padding depends on it
    TN_ASSIGN_OR_RETURN(const std::string auto_pad, c.String("auto_pad", "NOTSET"));
    if (auto_pad.starts_with("SAME")) {
      return c.Error("auto_pad {} needs a weight of known size, but got {}", auto_pad,
                     c.Type(weight).ToString());
    }
    kernel.emplace(w.size() - 2, 1);
  }
  TN_ASSIGN_OR_RETURN(WindowAttrs window, ReadWindowByCall(c, *kernel, 2, by_call));
  TN_ASSIGN_OR_RETURN(int64_t group, c.Int("group", 1));
  return Attrs{{"strides", window.strides},
               {"dilations", window.dilations},
               {"pads", window.pads},
               {"group", group}};
}

Expected<WindowAttrs> ReadWindowByCall(OpContext& c, std::vector<int64_t> kernel, size_t first_axis,
                                       std::vector<PaddedAxis>* by_call) {
  const size_t n = static_cast<size_t>(c.Rank(0)) - 2;
  TN_ASSIGN_OR_RETURN(std::optional<std::vector<int64_t>> kernel_shape, c.Ints("kernel_shape"));
  TN_ASSIGN_OR_RETURN(std::optional<std::vector<int64_t>> strides, c.Ints("strides"));
  TN_ASSIGN_OR_RETURN(std::optional<std::vector<int64_t>> dilations, c.Ints("dilations"));
  TN_ASSIGN_OR_RETURN(std::optional<std::vector<int64_t>> pads, c.Ints("pads"));
  TN_ASSIGN_OR_RETURN(std::string auto_pad, c.String("auto_pad", "NOTSET"));
  if (!kernel_shape && kernel.empty())
    return c.Error("expected the attribute kernel_shape, but it is missing");
  if (kernel_shape && !kernel.empty() && *kernel_shape != kernel) {
    return c.Error("expected kernel_shape {} as the weight has, but got {}",
                   ToString(AttrValue(kernel)), ToString(AttrValue(*kernel_shape)));
  }
  WindowAttrs w;
  w.kernel = kernel.empty() ? *kernel_shape : kernel;
  w.strides = strides.value_or(std::vector<int64_t>(n, 1));
  w.dilations = dilations.value_or(std::vector<int64_t>(n, 1));
  TN_RETURN_IF_ERROR(CheckEntries(c, "kernel_shape", w.kernel, n, 1));
  TN_RETURN_IF_ERROR(CheckEntries(c, "strides", w.strides, n, 1));
  TN_RETURN_IF_ERROR(CheckEntries(c, "dilations", w.dilations, n, 1));
  w.auto_pad = auto_pad != "NOTSET";
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
    TN_RETURN_IF_ERROR(SamePads(c, auto_pad == "SAME_UPPER", first_axis, &w, by_call));
  } else if (auto_pad == "VALID") {
    w.pads.assign(2 * n, 0);
  } else if (auto_pad == "NOTSET") {
    w.pads = pads.value_or(std::vector<int64_t>(2 * n, 0));
  } else {
    return c.Error("expected auto_pad NOTSET, SAME_UPPER, SAME_LOWER or VALID, but got {}",
                   graph::Quoted(auto_pad));
  }
  TN_RETURN_IF_ERROR(CheckEntries(c, "pads", w.pads, 2 * n, 0));
  return w;
}

}  // namespace

Expected<WindowAttrs> ReadWindow(OpContext& c, std::vector<int64_t> kernel, size_t first_axis) {
  return ReadWindowByCall(c, std::move(kernel), first_axis, nullptr);
}

std::span<const OpRow> ComputeRows() { return kRows; }

}  // namespace tenon::onnx
