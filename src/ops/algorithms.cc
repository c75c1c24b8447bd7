#include "ops/algorithms.h"

#include "ops/attention.h"
#include "ops/conv.h"
#include "ops/implicit_gemm.h"
#include "ops/matmul.h"
#include "ops/rows.h"

namespace tenon::ops {

using graph::OpKind;

const Algorithm* ChooseAlgorithm(const Group& group, const graph::Node& anchor) {
  struct Row {
    OpKind op;
    Algorithm algorithm;
  };
  static constexpr Row kRows[] = {
      {OpKind::kConv, {"direct_conv", "tile", DirectConvApplies, BuildDirectConv}},
      {OpKind::kConv, {"depthwise", "tile", DepthwiseApplies, BuildDepthwise}},
      {OpKind::kConv, {"implicit_gemm", "implicit_gemm", ImplicitGemmApplies, BuildImplicitGemm}},
      {OpKind::kMaxPool, {"blocked_pool", "window", BlockedWindowApplies, BuildBlockedWindow}},
      {OpKind::kAvgPool, {"blocked_pool", "window", BlockedWindowApplies, BuildBlockedWindow}},
      {OpKind::kReduce, {"blocked_reduce", "window", BlockedWindowApplies, BuildBlockedWindow}},
      {OpKind::kMatMul, {"packed_matmul", "matmul", PackedMatMulApplies, BuildPackedMatMul}},
      {OpKind::kSoftmax, {"rows", "rows", RowsApply, BuildRows}},
      {OpKind::kLayerNorm, {"rows", "rows", RowsApply, BuildRows}},
      {OpKind::kAttention, {"attention", "attention", AttentionApplies, BuildAttention}},
  };
  for (const Row& row : kRows) {
    if (row.op == anchor.op && row.algorithm.applies(group, anchor)) return &row.algorithm;
  }
  return nullptr;
}

}  // namespace tenon::ops
