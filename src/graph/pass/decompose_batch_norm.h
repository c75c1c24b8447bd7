// decompose_batch_norm: y = x · a + b with a = scale / √(var + epsilon), b = bias - mean · a, per
// channel.
//
// Needs: nothing. Ensures: no batch_norm is left. Where the statistics are constants (always, at
// inference), a and b are computed from weights alone and end up in `prepare`. Why early: so that
// fold_into_conv sees one form of a per-channel product and sum.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Graph DecomposeBatchNorm(const Graph& g, const GraphPassContext& context);

}  // namespace tenon::graph
