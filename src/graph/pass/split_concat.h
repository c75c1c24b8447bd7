// split_concat: a concat of very many becomes a concat of concats.
//
// Needs: nothing. Ensures: no concat has more than kMostParts operands. An element of a concat is
// looked for among all operands, one after the other, so that time to run and to compile grow with
// their number times their sizes; in a tree of them each is looked for in a few. Why here: before
// fuse, which makes groups of what is left.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Graph SplitConcat(const Graph& g, const GraphPassContext& context);

}  // namespace tenon::graph
