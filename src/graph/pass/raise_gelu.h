// raise_gelu: x/2 · (1 + erf(x/√2)) and x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))), in any order
// of factors, become gelu.
//
// Needs: nothing. Ensures: no gelu is spelled out.
// Why before fuse: one operator reads its operand once and has a polynomial of its own.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Graph RaiseGelu(const Graph& g, const GraphPassContext& context);

}  // namespace tenon::graph
