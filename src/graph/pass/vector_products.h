// vector_products: a product with a vector becomes a sum of products of elements.
//
// Needs: nothing. Ensures: no f32 matmul has one column, nor one row beside a computed matrix; on
// machines whose threads run together those remain that have one row or a constant operand. A tile
// of one column leaves most of a vector or of a warp's threads without work, and one of one row
// puts a matrix in order first to read it once. A sum goes over the matrix as it lies (before it
// was turned, if it was), takes in what its operands are computed of, and has epilogues behind
// views that drop the axis of one. Rows meet constant matrices, which lie in order already, in
// products (packed_matmul, thread_row_matmul). Sums of products are the same, each in the order of
// a reduction.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Graph VectorProducts(const Graph& g, const GraphPassContext& context);

}  // namespace tenon::graph
