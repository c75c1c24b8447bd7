// match_signs: a product of bytes whose signs the machine's unit does not multiply becomes one that
// it does, with bytes moved by 128 and what that changes taken off:
//   a · b = a · (b - 128) + 128 Σk a      a · b = (a + 128) · b - 128 Σk b
//
// Needs: nothing. Ensures: where the machine multiplies some bytes by an operation of its own, no
// product with a constant matrix of other signs that can become one of them. All of it wraps around
// at 32 bits alike. Why before common_subexpressions: sums of rows and columns may be there
// already, from zero points.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Graph MatchSigns(const Graph& g, const GraphPassContext& context);

}  // namespace tenon::graph
