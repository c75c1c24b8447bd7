// merge_products: products of one value by several matrices, of which an attention reads the
// results, become one product by the matrices side by side, of which it reads slices.
//
// Needs: nothing. Ensures: on a machine whose threads run together, queries, keys and values that
// are projections of one value are computed by one kernel: it has tiles for more of the machine,
// and reads the value once. Why after raise_attention: nothing else reads slices where they lie.
// Why before fuse: what follows a product is not yet part of it.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Graph MergeProducts(const Graph& g, const GraphPassContext& context);

}  // namespace tenon::graph
