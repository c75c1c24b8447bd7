// plan_groups: an algorithm, its choices and the layouts of its operands for every group.
//
// Needs: groups (fuse). Ensures: every group that does not depend on constants alone has a plan,
// and its operands and results lie as the plan's algorithm wants them: weights through a reshape
// that changes their layout alone (computed ahead, it costs nothing at run time), other values
// because their producer stores them so, or through such a reshape where that is cheaper. Graph
// inputs and outputs stay as they are, row-major in networks. Layouts of the whole network are
// chosen together: a feature map is row-major or in channel blocks as wide as a vector, every group
// says what it costs either way, and the least sum wins (plan/minimise.h). Then each group takes
// its cheapest point. A value that several convolutions pad has the largest of the borders they
// want. What depends on constants alone is planned when it is lowered, for the machine that
// compiles. Why last: what a plan says of neighbours must stay true.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Graph PlanGroups(const Graph& g, const GraphPassContext& context);

}  // namespace tenon::graph
