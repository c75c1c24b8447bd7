// Operators over windows: convolution, pooling, resizing; any number of spatial axes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/dims.h"
#include "graph/infer.h"
#include "ops/define.h"
#include "support/check.h"

namespace tenon::ops {

using graph::OpKind;
using te::Indices;

namespace {

// The geometry of a window operator, read off its attributes.
struct Window {
  std::vector<Expr> kernel;
  std::vector<int64_t> strides, dilations, pads;
  size_t n;  // spatial axes

  Window(const graph::Node& node, std::vector<Expr> k)
      : kernel(std::move(k)),
        strides(node.attrs.GetInts("strides")),
        dilations(node.attrs.GetInts("dilations")),
        pads(node.attrs.GetInts("pads")),
        n(kernel.size()) {}
  // A pool's.
  explicit Window(const graph::Node& node) : Window(node, Numbers(node.attrs.GetInts("kernel"))) {}

  static std::vector<Expr> Numbers(const std::vector<int64_t>& list) {
    std::vector<Expr> out;
    for (int64_t k : list) out.push_back(IndexConst(k));
    return out;
  }

  std::vector<te::Axis> Axes() const {
    std::vector<te::Axis> axes;
    for (size_t i = 0; i < n; ++i)
      axes.push_back(te::ReduceAxis("k" + std::to_string(i), kernel[i]));
    return axes;
  }
  // Coordinate in x along spatial axis i, which may lie outside.
  Expr At(size_t i, const Expr& out, const Expr& k) const {
    return out * strides[i] + k * dilations[i] - pads[i];
  }
  bool MayLeave(size_t i, const Expr& in_dim, const Expr& out_dim) const {
    if (pads[i] > 0) return true;
    auto d = AsInt(in_dim), o = AsInt(out_dim), k = AsInt(kernel[i]);
    return !d || !o || !k || (*o - 1) * strides[i] + (*k - 1) * dilations[i] - pads[i] >= *d;
  }
};

}  // namespace

// x at window position, clamped into bounds, and whether the position was inside (null: always).
static std::pair<Expr, Expr> WindowElement(const Operand& x, const Window& w, const Indices& lead,
                                           const Indices& out, const std::vector<Expr>& out_dims,
                                           const std::vector<te::Axis>& k) {
  Indices in = lead;
  Expr inside;
  for (size_t i = 0; i < w.n; ++i) {
    Expr at = w.At(i, out[i + 2], k[i].var);
    const Expr& dim = x.dims[i + 2];
    if (w.MayLeave(i, dim, out_dims[i + 2])) {
      Expr ok = And(Ge(at, IndexConst(0)), Lt(at, dim));
      inside = inside ? And(inside, ok) : ok;
      at = Max(Min(at, dim - 1), IndexConst(0));
    }
    in.push_back(at);
  }
  return {x.at(in), inside};
}

static Operand DefineConv(const OpContext& op) {
  const Operand &x = op.in[0], &w = op.in[1];
  Window window(*op.node, {w.dims.begin() + 2, w.dims.end()});
  int64_t group = op.Int("group");
  const Expr out_per_group = graph::DimFloorDiv(w.dims[0], IndexConst(group));
  const DType wide = graph::ContractionTypesOf(x.dtype, w.dtype, op.node->attrs)->accumulator;
  const double pad_value = op.node->attrs.GetFloat("pad_value", 0);
  return As(
      op.out.dtype, Read(te::Compute(op.name, op.out.dims, [&](const Indices& out) {
        te::Axis c = te::ReduceAxis("c", w.dims[1]);
        std::vector<te::Axis> k = window.Axes();
        Expr channel = group == 1 ? Expr(c.var) : (out[1] / out_per_group) * w.dims[1] + c.var;
        auto [element, inside] = WindowElement(x, window, {out[0], channel}, out, op.out.dims, k);
        Indices at = {out[1], c.var};
        for (const te::Axis& a : k) at.push_back(a.var);
        Expr value =
            inside ? Select::Make(inside, element, MakeConst(element->dtype, pad_value)) : element;
        std::vector<te::Axis> axes = {c};
        axes.insert(axes.end(), k.begin(), k.end());
        Expr bias = op.Has(2) ? CastExpr::Make(wide, op.in[2].at({out[1]})) : nullptr;
        return te::Sum(CastExpr::Make(wide, value) * CastExpr::Make(wide, w.at(at)), axes, bias);
      })));
}

// The maximum passes NaN over, which so is its identity: of a window without a number it is what
// remains.
static Operand DefineMaximum(const OpContext& op) {
  const Operand& x = op.in[0];
  Window window(*op.node);
  const Expr none = x.dtype.IsFloat() ? MakeConst(x.dtype, std::numeric_limits<double>::quiet_NaN())
                                      : LowestOf(x.dtype);
  return Read(te::Compute(op.name, op.out.dims, [&](const Indices& out) {
    std::vector<te::Axis> k = window.Axes();
    auto [element, inside] = WindowElement(x, window, {out[0], out[1]}, out, op.out.dims, k);
    if (inside) element = Select::Make(inside, element, none);
    return te::Body(element, k, BinaryOp::kMax, none);
  }));
}

// The position within one channel's image of the first element that is as large as the window's
// largest; a second reduction, over positions.
static Operand DefineMaximumAt(const OpContext& op, const Operand& best) {
  const Operand& x = op.in[0];
  Window window(*op.node);
  bool column_major = op.node->attrs.Get<bool>("column_major", false);
  std::vector<Expr> image(x.dims.begin() + 2, x.dims.end());
  auto position = [image, column_major](Indices at) {
    std::vector<Expr> dims = image;
    if (column_major) {
      std::reverse(at.begin(), at.end());
      std::reverse(dims.begin(), dims.end());
    }
    return CastExpr::Make(DType::Int(64), Linearize(at, dims));
  };
  Expr image_size = IndexConst(1);
  for (const Expr& d : image) image_size = image_size * d;
  Operand first = Read(te::Compute(op.name + "_first", op.out.dims, [&](const Indices& out) {
    std::vector<te::Axis> k = window.Axes();
    auto [element, inside] = WindowElement(x, window, {out[0], out[1]}, out, op.out.dims, k);
    Indices at;
    for (size_t i = 0; i < window.n; ++i) at.push_back(window.At(i, out[i + 2], k[i].var));
    Expr taken = Eq(element, best.at(out));
    if (inside) taken = And(inside, taken);
    DType i64 = DType::Int(64);
    return te::MinOf(Select::Make(taken, position(at), HighestOf(i64)), k);
  }));
  return {DType::Int(64), op.out.dims, [=](const Indices& out) {
            DType i64 = DType::Int(64);
            Indices begin;
            for (size_t i = 0; i < window.n; ++i) {
              begin.push_back(Max(out[i + 2] * window.strides[i] - window.pads[i], IndexConst(0)));
            }
            Expr at = first.at(out);
            at = Select::Make(Eq(at, HighestOf(i64)), position(begin), at);
            Expr channel = (out[0] * x.dims[1] + out[1]) * image_size;
            return at + CastExpr::Make(i64, channel);
          }};
}

std::vector<Operand> DefineMaxPool(const OpContext& op) {
  const Operand best = DefineMaximum(op);
  if (op.node->outputs.size() == 1) return {best};
  return {best, DefineMaximumAt(op, best)};
}

static Operand DefineAvgPool(const OpContext& op) {
  const Operand& x = op.in[0];
  Window window(*op.node);
  bool include_pad = op.node->attrs.Get<bool>("count_include_pad", false);
  Operand sum = Read(te::Compute(op.name + "_sum", op.out.dims, [&](const Indices& out) {
    std::vector<te::Axis> k = window.Axes();
    auto [element, inside] = WindowElement(x, window, {out[0], out[1]}, out, op.out.dims, k);
    if (inside) element = Select::Make(inside, element, MakeConst(element->dtype, 0));
    return te::Sum(element, k);
  }));
  // How many window positions count: a product over the axes of those inside (the padded) x.
  auto count = [window, x, include_pad](const Indices& out) {
    Expr n = IndexConst(1);
    for (size_t i = 0; i < window.n; ++i) {
      Expr begin = out[i + 2] * window.strides[i] - window.pads[i];
      Expr low = IndexConst(include_pad ? -window.pads[i] : 0);
      Expr high = x.dims[i + 2] + (include_pad ? window.pads[window.n + i] : 0);
      Expr d = IndexConst(window.dilations[i]);
      // positions begin + j·d, j in [0, K): the first not below low, the first not below high.
      Expr first = Max(CeilDiv(low - begin, d), IndexConst(0));
      Expr end = Min(CeilDiv(high - begin, d), window.kernel[i]);
      n = n * (end - first);
    }
    return n;
  };
  return {x.dtype, op.out.dims, [sum, count](const Indices& out) {
            Expr s = sum.at(out);
            return s / CastExpr::Make(s->dtype, Max(count(out), IndexConst(1)));
          }};
}

Operand DefineWindow(const OpContext& op) {
  switch (op.node->op) {
    case OpKind::kConv: return DefineConv(op);
    case OpKind::kMaxPool: return DefineMaximum(op);
    case OpKind::kAvgPool: return DefineAvgPool(op);
    default: break;  // no window: the caller dispatched wrongly
  }
  TN_UNREACHABLE();
}

}  // namespace tenon::ops
