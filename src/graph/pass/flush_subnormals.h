// flush_subnormals: weights too small for f32's normal numbers become zeros.
//
// Needs: a precision that lets sums round, which `exact` does not. Ensures: on CPUs no constant
// factor of a product or convolution in f32 is subnormal, below 2^-126 but not 0, if it is written
// in the network or is a product of two numbers that are. (What is computed is looked at where a
// number below 2^-63 takes part: no product of two others is subnormal.) Why: a vector with one
// subnormal element takes a core of x86 a hundred times as long to multiply, and training with
// weight decay leaves them in channels that nothing needs. What each adds is below 2^-126 of the
// other factor; infinity times such a weight is no number.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Graph FlushSubnormals(const Graph& g, const GraphPassContext& context);

}  // namespace tenon::graph
