// Which nodes are computed while compiling: those that depend on constants alone, within bounds
// (graph/pass/constants.h).
#pragma once

#include <vector>

#include "graph/graph.h"

namespace tenon::graph {

/// Splits what is computed from constants alone off a graph. Takes time linear in the graph and
/// the slices.
class PrepareSplit {
 public:
  explicit PrepareSplit(const Graph& g);

  /// Known once the prepare functions have run: a constant, or computed by prepared nodes.
  bool IsConstant(ValueId v) const { return constant_[static_cast<size_t>(v)]; }
  bool IsPrepared(NodeId n) const { return IsConstant(g_.node(n).outputs[0]); }
  /// The nodes that compute v, in order.
  std::vector<NodeId> Slice(ValueId v) const;

 private:
  const Graph& g_;
  const std::vector<bool> constant_;
};

}  // namespace tenon::graph
