#include "ops/fusing.h"

namespace tenon::ops {

using graph::IndexMapClass;
using graph::OpKind;

bool HasElementDefinition(OpKind op) {
  switch (graph::Info(op).map) {
    case IndexMapClass::kElementwise:
    case IndexMapClass::kBroadcast:
    case IndexMapClass::kInjective: return true;
    case IndexMapClass::kReduction:
    case IndexMapClass::kContraction: return false;
    case IndexMapClass::kWindow: return op == OpKind::kResize;
    case IndexMapClass::kOpaque: return op == OpKind::kShape;
  }
  return false;
}

bool ComputesInF32(const graph::Graph& g, const graph::Node& node) {
  const DType f32 = DType::Float(32);
  for (graph::ValueId v : node.inputs) {
    if (v != graph::kNoValue && g.type(v).dtype != f32) return false;
  }
  const std::string accumulator = node.attrs.GetString("accumulator");
  return g.type(node.outputs[0]).dtype == f32 && (accumulator.empty() || accumulator == "f32");
}

bool IsShortSum(const graph::Graph& g, const graph::Node& node) {
  constexpr int64_t kMost = 8;
  const std::string kind = node.op == OpKind::kReduce ? node.attrs.GetString("kind") : "";
  if (kind != "sum" || !g.type(node.inputs[0]).dtype.IsFloat()) return false;
  const std::vector<int64_t> axes = node.attrs.GetInts("axes");
  if (axes.size() != 1) return false;
  const auto size = AsInt(g.type(node.inputs[0]).dims[static_cast<size_t>(axes[0])]);
  return size && *size >= 1 && *size <= kMost;
}

bool IsView(OpKind op) {
  return op == OpKind::kReshape || op == OpKind::kTranspose || op == OpKind::kSlice ||
         op == OpKind::kExpand;
}

bool AbsorbsViews(OpKind anchor, size_t input) { return anchor == OpKind::kAttention && input < 3; }

}  // namespace tenon::ops
