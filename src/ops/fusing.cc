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

bool IsView(OpKind op) {
  return op == OpKind::kReshape || op == OpKind::kTranspose || op == OpKind::kSlice ||
         op == OpKind::kExpand;
}

bool AbsorbsViews(OpKind anchor, size_t input) { return anchor == OpKind::kAttention && input < 3; }

}  // namespace tenon::ops
