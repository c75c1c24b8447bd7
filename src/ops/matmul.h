// Matrix product with a packed second operand (Goto's scheme as in BLIS): panels of nv vectors of
// columns, contiguous along k, made ahead from constant weights; rows of the first operand are read
// in place by broadcast.
#pragma once

#include "ops/algorithms.h"

namespace tenon::ops {

Layout MatMulWeightLayout(const graph::Graph& g, const graph::Node& node, size_t input,
                          const Target& target);
bool PackedMatMulApplies(const Group& group, const graph::Node& node);
Operand BuildPackedMatMul(Group& group, const graph::Node& node, Attrs* attrs);

}  // namespace tenon::ops
