// split_products: products become split_matmul where the cost model says that this is faster.
//
// Needs: weights in their final order (merge_products), no layouts. Ensures: a product of f32 with
// a constant matrix is a split_matmul where the best plan of that is clearly cheaper than the best
// of the product itself, as it is where a unit multiplies tiles of bf16 several times as fast as
// vectors multiply f32; its second factor is the matrix as two parts of bf16, computed while
// compiling, which take as much memory. What the sums leave out keeps them within f32's own
// tolerances (decision 091), and not within those of `exact`, which leaves this pass out. Why
// before fuse: groups grow around what computes.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Graph SplitProducts(const Graph& g, const GraphPassContext& context);

}  // namespace tenon::graph
