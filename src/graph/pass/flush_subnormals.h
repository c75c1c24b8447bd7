// flush_subnormals: weights too small for f32's normal numbers become zeros.
//
// Needs: a precision that lets sums round, which `exact` does not. Ensures: on CPUs no constant
// factor of a product or convolution that is computed from f32 is subnormal, below 2^-126 but not
// 0. Where nothing that a factor is computed from is below 2^-63 it stays as it is: no product of
// two such numbers is subnormal. Why: a vector with one subnormal element takes a core of x86 a
// hundred times as long to multiply, and training with weight decay leaves them in channels that
// nothing needs; what they add is below 2^-126 of the other factor.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Graph FlushSubnormals(const Graph& g, const GraphPassContext& context);

}  // namespace tenon::graph
