// The one loop of passes that replace a node by another way to compute its value.
#pragma once

#include <functional>

#include "graph/builder.h"

namespace tenon::graph {

/// Answers a value to stand for the node's (only) output, or kNoValue to leave it. Reads and
/// extends the builder's graph, from what the node itself depends on; references into it die with
/// every Add.
using RewriteRule = std::function<Expected<ValueId>(Builder& b, NodeId node)>;

/// Asks the rule about every node with one output, last first: so the largest pattern wins.
/// Replacements of another type, and errors of inference, leave the node as it is. New nodes stand
/// before the node that they were made for and are not asked about. Dead code is gone afterwards.
Graph Rewrite(const Graph& g, const RewriteRule& rule);

}  // namespace tenon::graph
