// feed_loops: what a loop in one kernel reads of each iteration is computed in that kernel.
//
// Needs: groups (fuse, narrow), no layouts. Ensures: on machines whose threads run together, where
// a loop fits one kernel, a captured tensor that nobody else reads is computed in the body, if what
// it is made of is smaller, or lies elsewhere (views). Such a kernel has each element of a tensor
// with a row of the state's size for each iteration in one thread's registers once; in memory the
// tensor would be written and read, and be another launch. Why before plan_groups: a group inside
// of a kernel has no algorithm.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Graph FeedLoops(const Graph& g, const GraphPassContext& context);

}  // namespace tenon::graph
