// raise_hard_swish: x · hard_sigmoid(x) with alpha 1/6 and beta 1/2, also as (x · clip(x + 3, 0,
// 6)) / 6, becomes hard_swish.
//
// Needs: hard_sigmoid raised. Ensures: no hard_swish is spelled out.
// Why before fuse: one operator reads its operand once.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Graph RaiseHardSwish(const Graph& g, const GraphPassContext& context);

}  // namespace tenon::graph
