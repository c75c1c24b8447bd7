// The spaces of a graph's groups, to be looked at and to be chosen from: what each group's
// algorithms leave open, what every point costs, and the graph with a point of one's own.
//
//   mm: packed_matmul {nv: 2, tile_rows: 6, row_block: 1, parallel_loops: 2}
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "graph/pass/pass.h"
#include "ops/algorithm.h"
#include "support/expected.h"

namespace tenon::plan {

/// What a point is called: a node, one of the algorithms that apply to it, a number for each knob.
struct NamedPoint {
  std::string node, algorithm;
  ops::Point choices;
  /// "NODE: algorithm {knob: value, …}", which Parse reads.
  std::string ToString() const;
  /// Choices may come in any order; an algorithm that leaves nothing open needs none.
  static Expected<NamedPoint> Parse(std::string_view text);
};

/// The node's name where no other kernel of the graph has it, else the number of its first result
/// in the graph's text: "%7".
std::string NameOf(const graph::Graph& g, graph::NodeId node);
/// The node of that name, or with a result of that name or number; it must become a kernel
/// (graph::KernelNodes). Errors say which names there are.
Expected<graph::NodeId> FindKernel(const graph::Graph& g, std::string_view name);

/// One way to compute a group, with all of its points.
struct AlgorithmSpace {
  const ops::Algorithm* algorithm;
  ops::Space space;
  struct Priced {
    ops::Point point;
    double seconds;  // of one launch at typical sizes, without what its operands' layouts cost
  };
  std::vector<Priced> points;  // the cheapest first; of equal ones in the space's order
};
/// By the node's algorithms, in the order of their table.
std::vector<AlgorithmSpace> SpacesOf(const graph::Graph& g, graph::NodeId node,
                                     const graph::GraphPassContext& context);

/// Spaces of nodes as text: knobs, domains and constraints, and with `prices` every point of a node
/// by its price, each a NamedPoint. ToJson has all points in any case.
std::string SpacesText(const graph::Graph& g, const std::vector<graph::NodeId>& nodes,
                       const graph::GraphPassContext& context, bool prices);
std::string SpacesJson(const graph::Graph& g, const std::vector<graph::NodeId>& nodes,
                       const graph::GraphPassContext& context, bool prices);

/// A graph and a node of it.
struct PlannedNode {
  graph::Graph graph;
  graph::NodeId node;
};
/// The graph with that plan on the node, and the node there. Operands that do not lie as the
/// algorithm wants them pass through relayouts; a result that lies otherwise than before goes back
/// through one to those who read it. A plan that another layout served before is replaced, its
/// relayouts too. Errors: the names that there are; the knob or the constraint that the point
/// breaks.
Expected<PlannedNode> WithPoint(const graph::Graph& g, const NamedPoint& point,
                                const graph::GraphPassContext& context);

}  // namespace tenon::plan
