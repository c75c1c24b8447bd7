// Sizes that a call must know before it asks for memory, and what finds them.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace tenon::graph {

/// A graph whose results, scalars of i64, are the sizes `found`, in order. It has the inputs of the
/// graph that it is a part of, and may mention what the stages before it find.
struct SizeStage {
  Graph graph;
  std::vector<Var> found;
};

/// Takes the nodes that define dims without a `most` out of a graph, and what only these need: what
/// finds the dims is then in the stages, each of which needs the stages before it alone. What a
/// stage shares with the graph is computed by both.
std::vector<SizeStage> SplitSizeStages(Graph* g);

}  // namespace tenon::graph
