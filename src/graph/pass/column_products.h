// column_products: a product with a matrix of one column becomes a sum of products of elements.
//
// Needs: nothing. Ensures: on machines whose threads run together, no f32 matmul of two values has
// one column. A tile of one column leaves most threads without work, while a sum goes over rows as
// they lie, takes in what its operands are computed of, and has epilogues behind views that drop
// the column. Products with weights stay: those read their matrix once already (thread_row_matmul).
// Sums of products are the same, each in the order of a reduction.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Graph ColumnProducts(const Graph& g, const GraphPassContext& context);

}  // namespace tenon::graph
