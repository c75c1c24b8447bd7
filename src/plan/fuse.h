// fuse: groups of nodes become one `fused` node, which is one kernel.
//
// Needs: no layouts, which go with groups (plan_groups). Ensures: a group has at most one anchor
// (an operator whose elements are not expressions of its operands' elements), epilogues of the
// anchor's shape after it, and views (reshape, transpose, …) read through by anchors that absorb
// them at no cost; other groups are element operators alone. One value leaves a group. One-element
// constants lie inside the region. An operator alone stays as it is. Why after all passes of
// graph/pass: they reason about single operators.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Graph Fuse(const Graph& g, const GraphPassContext& context);

}  // namespace tenon::graph
