#include "ops/operations.h"

namespace tenon::ops {

namespace {

double Count(const graph::Graph& g, const graph::TensorType& type, size_t first = 0) {
  double n = 1;
  for (size_t i = first; i < type.dims.size(); ++i) {
    n *= static_cast<double>(TypicalSize(g, type.dims[i]));
  }
  return n;
}

double DimFromEnd(const graph::Graph& g, const graph::TensorType& type, size_t k) {
  return static_cast<double>(TypicalSize(g, type.dims[type.dims.size() - k]));
}

// Of an operand, along the node's axis.
double DimAlong(const graph::Graph& g, const graph::Node& n, size_t operand) {
  const auto axis = static_cast<size_t>(n.attrs.GetInt("axis"));
  return static_cast<double>(TypicalSize(g, g.type(n.inputs[operand]).dims[axis]));
}

}  // namespace

double OperationsOf(const graph::Graph& g, const graph::Node& n) {
  double out = Count(g, g.type(n.outputs[0]));
  switch (n.op) {
    case graph::OpKind::kMatMul:
      return 2 * out *
             DimFromEnd(g, g.type(n.inputs[0]), n.attrs.Get<bool>("trans_a", false) ? 2 : 1);
    case graph::OpKind::kSplitMatMul:
    case graph::OpKind::kBlockMatMul: return 2 * out * DimFromEnd(g, g.type(n.inputs[0]), 1);
    case graph::OpKind::kConv: return 2 * out * Count(g, g.type(n.inputs[1]), 1);
    case graph::OpKind::kWinogradConv: {  // without the transforms
      const double points = DimFromEnd(g, g.type(n.inputs[1]), 1);
      return 2 * out * DimFromEnd(g, g.type(n.inputs[1]), 3) * points * points /
             ((points - 2) * (points - 2));
    }
    case graph::OpKind::kAttention:
      return 2 * DimFromEnd(g, g.type(n.inputs[1]), 2) * (Count(g, g.type(n.inputs[0])) + out);
    // As they are defined: each element looks at all others, or at all updates, along the axis.
    case graph::OpKind::kTopK: return Count(g, g.type(n.inputs[0])) * DimAlong(g, n, 0);
    case graph::OpKind::kScatter: return out * DimAlong(g, n, 2);
    case graph::OpKind::kMaxPool:
    case graph::OpKind::kAvgPool: {
      double window = 1;
      for (int64_t k : n.attrs.GetInts("kernel")) window *= static_cast<double>(k);
      return out * window;
    }
    default: break;
  }
  return graph::Info(n.op).map == graph::IndexMapClass::kReduction ? Count(g, g.type(n.inputs[0]))
                                                                   : out;
}

}  // namespace tenon::ops
