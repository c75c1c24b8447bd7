// widen_f16: what a network in f16 computes is f32 until somebody sees it: inputs, outputs and
// weights keep their types, and values that are moved between them are not rounded.
//
// Needs: single operators, raised. Ensures: where threads do not run together (CPUs, which compute
// f16 in f32 anyway), operators that round take operands of f32 and give f32. What jumps
// (comparisons, roundings to integers, indices of the best), what a model casts to f16, inputs of
// regions, and outputs are rounded first. Weights of products with few rows stay f16, since such
// products take the time of their bytes; what meets them is rounded. Why here: raising looks at
// constants as they are, while folding makes weights of weights, which f16 would round once more.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Graph WidenF16(const Graph& g, const GraphPassContext& context);

}  // namespace tenon::graph
