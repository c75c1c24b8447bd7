#include "frontend/onnx/window.h"

#include <algorithm>

#include "frontend/onnx/call_sizes.h"

namespace tenon::onnx {

using graph::DimAdd;
using graph::DimMul;
using graph::DimSub;

namespace {

// Padding that keeps ceil(dim / stride) windows, the odd element at the end (upper) or the
// beginning.
void SamePads(const OpContext& c, bool upper, const Dims& kernel, size_t first_axis,
              WindowAttrs* w) {
  const size_t n = kernel.size();
  const Expr one = IndexConst(1), two = IndexConst(2);
  w->pads.assign(2 * n, 0);
  for (size_t i = 0; i < n; ++i) {
    const size_t axis = i + first_axis;
    const Expr dim = c.Dims(0)[axis], stride = IndexConst(w->strides[i]);
    const Expr reach = DimMul(DimSub(kernel[i], one), IndexConst(w->dilations[i]));
    Expr total = reach;
    if (w->strides[i] != 1) {
      const Expr last = DimMul(DimSub(graph::DimCeilDiv(dim, stride), one), stride);
      total = graph::DimMax(DimSub(DimAdd(last, DimAdd(reach, one)), dim), IndexConst(0));
    }
    if (const std::optional<int64_t> known = AsInt(total)) {
      w->pads[i] = upper ? *known / 2 : *known - *known / 2;
      w->pads[n + i] = *known - w->pads[i];
      continue;
    }
    const Expr before = graph::DimFloorDiv(upper ? total : DimAdd(total, one), two);
    w->by_call.push_back({static_cast<int64_t>(axis), before, DimAdd(dim, total)});
  }
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

// Everything but the kernel; `kernel` has its sizes.
Status ReadMoves(OpContext& c, const Dims& kernel, size_t first_axis, WindowAttrs* w) {
  const size_t n = static_cast<size_t>(c.Rank(0)) - 2;
  TN_ASSIGN_OR_RETURN(std::optional<std::vector<int64_t>> strides, c.Ints("strides"));
  TN_ASSIGN_OR_RETURN(std::optional<std::vector<int64_t>> dilations, c.Ints("dilations"));
  TN_ASSIGN_OR_RETURN(std::optional<std::vector<int64_t>> pads, c.Ints("pads"));
  TN_ASSIGN_OR_RETURN(std::string auto_pad, c.String("auto_pad", "NOTSET"));
  w->strides = strides.value_or(std::vector<int64_t>(n, 1));
  w->dilations = dilations.value_or(std::vector<int64_t>(n, 1));
  TN_RETURN_IF_ERROR(CheckEntries(c, "strides", w->strides, n, 1));
  TN_RETURN_IF_ERROR(CheckEntries(c, "dilations", w->dilations, n, 1));
  w->auto_pad = auto_pad != "NOTSET";
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
    SamePads(c, auto_pad == "SAME_UPPER", kernel, first_axis, w);
  } else if (auto_pad == "VALID") {
    w->pads.assign(2 * n, 0);
  } else if (auto_pad == "NOTSET") {
    w->pads = pads.value_or(std::vector<int64_t>(2 * n, 0));
  } else {
    return c.Error("expected auto_pad NOTSET, SAME_UPPER, SAME_LOWER or VALID, but got {}",
                   graph::Quoted(auto_pad));
  }
  return CheckEntries(c, "pads", w->pads, 2 * n, 0);
}

}  // namespace

Expected<WindowAttrs> ReadWindow(OpContext& c, std::vector<int64_t> kernel, size_t first_axis) {
  TN_ASSIGN_OR_RETURN(std::optional<std::vector<int64_t>> kernel_shape, c.Ints("kernel_shape"));
  if (!kernel_shape && kernel.empty())
    return c.Error("expected the attribute kernel_shape, but it is missing");
  if (kernel_shape && !kernel.empty() && *kernel_shape != kernel) {
    return c.Error("expected kernel_shape {} as the weight has, but got {}",
                   ToString(AttrValue(kernel)), ToString(AttrValue(*kernel_shape)));
  }
  WindowAttrs w;
  w.kernel = kernel.empty() ? *kernel_shape : std::move(kernel);
  TN_RETURN_IF_ERROR(
      CheckEntries(c, "kernel_shape", w.kernel, static_cast<size_t>(c.Rank(0)) - 2, 1));
  Dims sizes;
  for (int64_t k : w.kernel) sizes.push_back(IndexConst(k));
  TN_RETURN_IF_ERROR(ReadMoves(c, sizes, first_axis, &w));
  return w;
}

Val Padded(Val x, std::span<const PaddedAxis> axes, double value) {
  if (!x || axes.empty()) return x;
  const Val number = x.formula().Number(x.dtype(), value);
  return Padded(std::move(x), axes, number);
}

Val Padded(Val x, std::span<const PaddedAxis> axes, const Val& value) {
  for (const PaddedAxis& a : axes)
    x = Cut(x, a.axis, -NumberOf(x.formula(), a.before), a.size, value);
  return x;
}

Expected<ConvAttrs> ReadConv(OpContext& c, size_t weight) {
  if (c.Rank(0) < 3 || c.Rank(weight) != c.Rank(0)) {
    return c.Error(
        "expected an input of rank 3 or more and a weight of the same rank, but got {} and {}",
        c.Type(0).ToString(), c.Type(weight).ToString());
  }
  TN_RETURN_IF_ERROR(FixKernel(c, weight));
  const Dims sizes(c.Dims(weight).begin() + 2, c.Dims(weight).end());
  TN_ASSIGN_OR_RETURN(const std::optional<std::vector<int64_t>> kernel_shape,
                      c.Ints("kernel_shape"));
  TN_RETURN_IF_ERROR(CheckKernel(c, kernel_shape, sizes));
  WindowAttrs window;
  TN_RETURN_IF_ERROR(ReadMoves(c, sizes, 2, &window));
  TN_ASSIGN_OR_RETURN(int64_t group, c.Int("group", 1));
  return ConvAttrs{{{"strides", window.strides},
                    {"dilations", window.dilations},
                    {"pads", window.pads},
                    {"group", group}},
                   std::move(window.by_call)};
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

}  // namespace tenon::onnx
