// Which nodes are computed while compiling: those that depend on constants alone, within bounds.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace tenon::graph {

/// Bounds on what a compilation computes. A node beyond them runs with the network instead; they
/// are numbers of their own, not the machine's, so that every machine prepares the same weights.
struct PrepareLimits {
  static constexpr int64_t kWork = int64_t{1} << 38;   // operations: minutes on one core
  static constexpr int64_t kNodes = int64_t{1} << 20;  // of all slices
  /// A value that is computed has at most this many bytes, or this many times those it is computed
  /// from: packing and widening pass, what makes much out of little is cheaper to compute again.
  static constexpr int64_t kBytes = int64_t{1} << 26;
  static constexpr int64_t kGrowth = 16;
};

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
  std::vector<bool> constant_;
};

}  // namespace tenon::graph
