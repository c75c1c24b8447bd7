// fuse: groups of nodes become one `fused` node, which is one kernel.
//
// Needs: no layouts, which go with groups (plan_groups). Ensures: a group has at most one anchor
// (an operator whose elements are not expressions of its operands' elements), epilogues of the
// anchor's shape after it, and views (reshape, transpose, …) read through by anchors that absorb
// them at no cost; other groups are element operators alone. One value leaves a group, and beside
// it results of a seed that has several, or what a reduction reduces. One-element constants lie
// inside the region. An operator alone stays as it is. Why after all passes of graph/pass: they
// reason about single operators.
#pragma once

#include <string>
#include <vector>

#include "graph/pass/pass.h"

namespace tenon::graph {

/// Groups end where the context's prices say so (plan::Cuts), else as late as they can.
Graph Fuse(const Graph& g, const GraphPassContext& context);

/// A group of several nodes as late as it ends, and what else it could be.
struct GrownGroup {
  std::string key;           // a hash of what its nodes compute, whatever values are called
  std::string result;        // the name of the value that leaves it
  std::vector<size_t> ends;  // numbers of nodes, fewer than all, that one value leaves, too
};
/// In the order of their first nodes, those of the graph's regions not among them.
std::vector<GrownGroup> GrownGroups(const Graph& g);

}  // namespace tenon::graph
