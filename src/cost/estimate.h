// The time of a described piece of work on a CPU: pure functions of a profile. One model serves the
// default schedules (the candidate with the least time wins), fusion's ties and the kernel table
// that `compile` prints.
#pragma once

#include <array>
#include <cstdint>

#include "cost/machine_profile.h"

namespace tenon {

/// One kernel, cut into `tiles` equal pieces that a team shares out statically. Everything but
/// `barriers` and `team` is a total over all tiles, with what is computed for padding counted in:
/// it takes the same time.
struct WorkDescription {
  double flops = 0;           // by multiply-adds, two each
  double fma_efficiency = 1;  // the part of the peak that the inner kernel reaches (FmaEfficiency)
  double vector_ops =
      0;  // other arithmetic, in elements: epilogues, reductions, each exp as its ~10 operations
  std::array<double, kNumMemoryLevels> bytes =
      {};                   // moved between the core and each level, re-reading included
  double packed_bytes = 0;  // rearranged before use, beyond what `bytes` says
  int64_t tiles = 1;
  int team = 1;
  int barriers = 0;  // besides the join at the end

  double& bytes_at(MemoryLevel level) { return bytes[static_cast<size_t>(level)]; }
};

/// Seconds on the critical worker: it computes and streams from every level at once, so the slowest
/// of these counts; packing, epilogue, tile and team overheads add. Wave quantisation is exact:
/// with 5 tiles on 2 workers one has 3.
double EstimateSeconds(const WorkDescription& work, const MachineProfile& profile);

/// The part of the FMA peak that a register tile of `rows` × `vectors` accumulators reaches when
/// its operands are in L1: too few chains wait for the latency, too flat a tile for its loads. 0
/// where the tile, one row of the vector operand and one broadcast do not fit in the registers.
double FmaEfficiency(int rows, int vectors, const MachineProfile& profile);

/// The part of a dimension's computation that is not padding when it is cut into tiles: extent /
/// round_up(extent, tile). 1 for an extent of 0.
double TileUtilisation(int64_t extent, int64_t tile);

}  // namespace tenon
