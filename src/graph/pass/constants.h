// Which values are known before the network runs: those that depend on constants alone, within
// bounds.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace tenon::graph {

/// Bounds on what a compilation computes. A node beyond them runs with the network instead; they
/// are numbers of their own, not the machine's, so that every machine prepares the same weights.
struct PrepareLimits {
  /// Operations of a value, and of all: seconds on one core. What is computed from much may take
  /// more: packing and unpacking weights of any size pass, products of large weights do not.
  static constexpr int64_t kWork = int64_t{1} << 33;
  static constexpr int64_t kWorkPerByte = 64;          // of the constants that it is computed from
  static constexpr int64_t kNodes = int64_t{1} << 20;  // of all slices
  /// A value that is computed has at most this many bytes, or this many times those it is computed
  /// from: packing and widening pass, what makes much out of little is cheaper to compute again.
  static constexpr int64_t kBytes = int64_t{1} << 26;
  static constexpr int64_t kGrowth = 16;
};

/// By value: a constant, or computed from constants alone by what will be computed ahead (by
/// `prepare`), whatever sizes the graph's dims have. Takes time linear in the graph.
std::vector<bool> ConstantValues(const Graph& g);

}  // namespace tenon::graph
