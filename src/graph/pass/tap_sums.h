// tap_sums: a convolution of single channels with few taps along one axis becomes products and sums
// of elements, where threads run together.
//
// Needs: weights that are constant. Ensures: conv(x, w, bias) with x: f32[n, c, t], as many groups
// as channels, one map each, stride 1 and at most four taps is the sum of x, shifted by each tap,
// times that tap's weights, and the bias. Where x was turned, it is turned back to [n, t, c] for
// that, and then the result: such convolutions mostly stand between turns, which simplify_views
// finds then. Why: elements are one kernel with what is around them.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Graph TapSums(const Graph& g, const GraphPassContext& context);

}  // namespace tenon::graph
