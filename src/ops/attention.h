// Attention by blocks of queries: for each head, the keys are transposed once so that scores come
// in vectors; then for each block of queries scores, softmax and the weighted sum of values run one
// after another in the nearest caches, and no matrix of scores is ever written to memory. (The keys
// of one head are assumed to fit the second-level cache; an online softmax over blocks of keys, as
// in FlashAttention, is for sequences beyond that.)
#pragma once

#include "ops/algorithms.h"

namespace tenon::ops {

bool AttentionApplies(const Group& group, const graph::Node& node);
Operand BuildAttention(Group& group, const graph::Node& node, Attrs* attrs);

}  // namespace tenon::ops
