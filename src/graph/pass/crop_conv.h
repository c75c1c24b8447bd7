// crop_conv: taps of a convolution that meet nothing but padding are cut off its weights.
//
// Needs: nothing. Ensures: along each spatial axis of a convolution with constant weights and known
// sizes, the first and the last tap meet an element of x for some output, as far as pads stay
// non-negative. (With dilation 24 on a map of 14 × 14, a 3 × 3 kernel is a 1 × 1 kernel: a ninth of
// the work, and no halo.) Padding is zero, so nothing changes for finite weights. Why before
// layouts: they give the input the halo that pads ask for.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Graph CropConv(const Graph& g, const GraphPassContext& context);

}  // namespace tenon::graph
