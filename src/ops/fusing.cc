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

bool IsView(OpKind op) {
  return op == OpKind::kReshape || op == OpKind::kTranspose || op == OpKind::kSlice ||
         op == OpKind::kExpand;
}

bool AbsorbsViews(OpKind anchor, size_t input) { return anchor == OpKind::kAttention && input < 3; }

}  // namespace tenon::ops
