// The time of a described piece of work: pure functions of a machine. One model serves the choice
// among algorithms and points of their spaces, fusion's ties and the kernel table that `compile`
// prints.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "cost/machine.h"

namespace tenon {

/// What one turn of a loop waits for: bytes that come from a level while nothing else can be done.
struct Stream {
  size_t level = 0;
  double bytes = 0;
  friend bool operator==(const Stream&, const Stream&) = default;
};

/// Turns of a reduction loop over tiles of `rows` × `vectors` accumulators of a unit.
struct TileSteps {
  int64_t rows = 1, vectors = 1;
  double steps = 0;
  Stream stream;
};

/// Most levels of memory that a machine has.
inline constexpr size_t kMostMemoryLevels = 4;

/// One kernel, cut into `tiles` equal pieces that a team shares out statically. Everything but
/// `barriers` and `team` is a total over all tiles, with what is computed for padding counted in:
/// it takes the same time.
struct WorkDescription {
  DType type = DType::Float(32);        // of accumulators
  std::optional<ComputeUnit> unit;      // of the products; none: the type's vector unit
  std::array<TileSteps, 4> tile_steps;  // products in register tiles; the rest of it is zeros
  double scalar_ops =
      0;  // arithmetic that is done an element at a time, multiply-adds counting one
  double vector_ops = 0;  // that is done in vectors, in elements: epilogues, reductions, each exp
                          // as its ~10 operations
  std::array<double, kMostMemoryLevels> bytes =
      {};                   // moved between the worker and each level, re-reading included
  double packed_bytes = 0;  // rearranged before use, beyond what `bytes` says
  int64_t tiles = 1;
  int64_t team = 1;
  int64_t barriers = 0;  // besides the join at the end

  /// What `stream` says counts in `bytes` too, which is where the machine's limits are seen.
  void AddTileSteps(int64_t rows, int64_t vectors, double steps, const Stream& stream = {});
};

/// Cycles of one turn of a reduction loop over a tile: operations of the unit against loads (of the
/// unit's second operand for each vector, and of its first for each row), and the latency of a
/// short chain of accumulators.
double StepCycles(int64_t rows, int64_t vectors, const Machine& machine, const ComputeUnit& unit);

/// Seconds on the critical worker: computing and streaming from every level overlap, but not
/// wholly, so that the slowest counts and a tenth of the others; packing and team overheads add.
/// Tiles overlap with no stream but their own: a turn that waits for one takes as long as that.
/// Products by a matrix unit, whose registers hold whole tiles, take longer the more of them a step
/// holds.
/// Wave quantisation is exact: with 5 tiles on 2 workers one has 3.
double EstimateSeconds(const WorkDescription& work, const Machine& machine);

/// Seconds to write `bytes` of a value again in another layout.
double RelayoutSeconds(int64_t bytes, const Machine& machine);

}  // namespace tenon
