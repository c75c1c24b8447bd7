// raise_layer_norm: (x - mean) / √(mean((x - mean)²) + epsilon) over the last axes, times a scale,
// plus a bias (either may be missing), becomes layer_norm.
//
// Needs: common subexpressions merged. Ensures: no such normalisation is spelled out. Scale and
// bias are parameters of the normalised axes: a residual that is added stays an add. Why before
// fuse: spelled out it is two reductions and a handful of kernels.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Graph RaiseLayerNorm(const Graph& g, const GraphPassContext& context);

}  // namespace tenon::graph
