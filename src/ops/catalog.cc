#include "ops/catalog.h"

#include "ops/conv.h"
#include "ops/implicit_gemm.h"
#include "ops/matmul.h"
#include "ops/tile.h"

namespace tenon::ops {

using graph::IndexMapClass;
using graph::OpKind;
using graph::ValueId;

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
  for (ValueId v : node.inputs) {
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

int64_t ChannelBlock(const Target& target) { return Lanes32(target); }

Layout WeightLayout(const graph::Graph& g, const graph::Node& node, size_t input,
                    const Target& target) {
  if (node.op == OpKind::kConv) {
    return HasDirectConv(g, node) ? ConvWeightLayout(g, node, input, target)
                                  : ImplicitGemmWeightLayout(g, node, input, target);
  }
  if (node.op == OpKind::kMatMul) return MatMulWeightLayout(g, node, input, target);
  return nullptr;
}

bool WantsBlocks(const graph::Graph& g, const graph::Node& node) { return HasDirectConv(g, node); }

std::vector<int64_t> WantedHalo(const graph::Graph& g, const graph::Node& node,
                                const Target& target) {
  if (HasDirectConv(g, node)) return node.attrs.GetInts("pads");
  return HasImplicitGemm(g, node) ? ImplicitGemmHalo(g, node, target) : std::vector<int64_t>{};
}

}  // namespace tenon::ops
