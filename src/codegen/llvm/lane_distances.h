// How the lanes of an index lie to each other, where that is known when code is generated.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "arith/analyzer.h"
#include "ir/expr.h"

namespace tenon::codegen {

/// Lane l of an index is base + distance[l]; the least distance is 0.
struct LaneDistances {
  Expr base;  // a scalar
  std::vector<int64_t> distance;

  /// From the first element that a lane means to the last.
  int64_t Span() const;
  /// One element for all lanes, or one behind the other, forwards or backwards.
  bool IsRow() const;
};

/// Of a vector of `index`: what is a sum of ramps and broadcasts, times, divided by or modulo
/// constants, as long as what is divided leaves a known remainder:
///
///   (ramp(i * 16, 1, 4) + 1) / 2      i * 8 + 0, 1, 1, 2
///
/// Nullopt where it is another, or not known.
std::optional<LaneDistances> DistancesOf(const Expr& index, Analyzer* facts);

}  // namespace tenon::codegen
