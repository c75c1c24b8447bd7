// winograd: convolutions become winograd_conv where the cost model says that this is faster.
//
// Needs: weights' final values (fold_into_conv), no layouts. Ensures: a convolution of f32 with
// known sizes, 3 × 3 taps, strides and dilations of 1, one group and constant weights is a
// winograd_conv for tiles of 4 × 4 or 2 × 2 where the best plan of that is clearly cheaper than the
// best of the convolution itself; its weights are a product of the old ones with a constant matrix,
// computed while compiling. Sums are no longer the convolution's own, and their error is about
// twice as large (decision 063), so `exact` leaves this pass out. Why before fuse: groups grow
// around what computes.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Graph Winograd(const Graph& g, const GraphPassContext& context);

/// Beside convolutions whose factors will have 16 bits (narrow_f16, narrow_bf16), on CPUs: sums of
/// Winograd's products are f32's there, of maps that may be kept in 16 bits.
Graph WinogradF16(const Graph& g, const GraphPassContext& context);
Graph WinogradBf16(const Graph& g, const GraphPassContext& context);

}  // namespace tenon::graph
