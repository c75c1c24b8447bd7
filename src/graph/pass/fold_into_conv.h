// fold_into_conv: conv(x, w) · a + b per output channel, and longer chains of these, becomes
// conv(x, w · a) with bias.
//
// Needs: batch norms decomposed. Ensures: no convolution with constant weights whose only reader
// multiplies or adds a constant per channel (a scalar, or [M, 1, …] aligned to axis 1). The
// products are nodes on constants: `prepare`. Why before layouts: weights are transformed while
// they still have their logical form.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Graph FoldIntoConv(const Graph& g, const GraphPassContext& context);

}  // namespace tenon::graph
