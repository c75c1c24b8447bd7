// raise_attention: matmul(softmax(scale · q kᵀ + mask), v) becomes attention. The scale may stand
// on q, on k (torch puts its root on both) and on the product; the mask is added; rows of NaN may
// be replaced by 0 (torch's masked rows), and rows without a key be 0 (the body of ONNX's
// Attention).
//
// Needs: softmax raised. Ensures: where scores and probabilities have no other reader, they are
// never stored. k is read as […, n, d] through a transpose, which simplify_views merges with what
// the model did to make kᵀ. Why before simplify_views and fuse: for that, and because the matmuls
// would become anchors of their own.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Graph RaiseAttention(const Graph& g, const GraphPassContext& context);

}  // namespace tenon::graph
