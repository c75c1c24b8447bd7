// common_subexpressions: equal nodes become one, and so do constants with the same bytes.
//
// Needs: nothing. Ensures: no two nodes have the same operator, operands, attributes and result
// types; no two constants have the same type and place in a file, or the same few bytes. Why early:
// later passes count uses, and equal (weight, transform) pairs are to be computed once.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Graph EliminateCommonSubexpressions(const Graph& g, const GraphPassContext& context);

}  // namespace tenon::graph
