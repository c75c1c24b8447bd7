// split_taps: a convolution most of whose work is padding becomes a sum of convolutions, one for
// each tap.
//
// Needs: nothing. Ensures: a convolution with constant weights, known sizes and strides of 1 does
// not multiply padding for more than half of its work, if one of its taps meets x for every output:
// the others are products over the part of x that they meet, added where they belong. (With
// dilation 12 on a map of 14 × 14, a 3 × 3 kernel has a sixth of the work, and no border that is
// wider than the map.) Sums are taken in another order, in the type of the result, so that only
// those of f32 and f64 are. Why after crop_conv: taps that meet nothing are gone.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Graph SplitTaps(const Graph& g, const GraphPassContext& context);

}  // namespace tenon::graph
