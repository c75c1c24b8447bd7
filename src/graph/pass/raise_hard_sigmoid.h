// raise_hard_sigmoid: clip(a·x + b, 0, h) / h becomes hard_sigmoid with alpha = a/h and beta = b/h
// (h = 1: no division).
//
// Needs: nothing. Ensures: no such clip is left; a clip of x itself, without a sum, stays.
// Why before raise_hard_swish: which looks for hard_sigmoid.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Graph RaiseHardSigmoid(const Graph& g, const GraphPassContext& context);

}  // namespace tenon::graph
