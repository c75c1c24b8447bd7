// What a CPU's units can do, as data: the constants that cost estimates (estimate.h) are made of. A
// preset follows from a target's features and cache sizes alone, so that compiling gives the same
// bytes on every machine; a measured profile replaces it only when asked for.
#pragma once

#include <array>
#include <cstdint>

#include "target/target.h"

namespace tenon {

enum class MemoryLevel { kL1, kL2, kL3, kDram };
constexpr int kNumMemoryLevels = 4;

/// One level as one core sees it, and what all cores together get out of it.
struct MemoryRate {
  int64_t capacity_bytes = 0;  // per core for L1 and L2, shared for L3; DRAM: no limit
  double core_bytes_per_second = 0;
  double machine_bytes_per_second = 0;  // for private levels: no limit beyond the cores'
};

struct MachineProfile {
  double cycles_per_second = 0;
  int fp32_lanes = 0;  // of one vector register
  int vector_registers = 0;
  double fma_units =
      0;  // vector fused multiply-adds (or, without FMA, multiply and add pairs) a cycle
  double fma_latency_cycles = 0;
  double vector_loads_per_cycle = 0;  // broadcasts count as loads
  std::array<MemoryRate, kNumMemoryLevels> memory;
  double pack_bytes_per_second = 0;  // rearranging a panel, one core
  double tile_seconds = 0;           // entering and leaving one tile's kernel
  double launch_seconds = 0;         // starting a kernel on one worker
  double barrier_seconds = 0;        // a fork and join, or a barrier, of two workers and more

  const MemoryRate& rate(MemoryLevel level) const { return memory[static_cast<size_t>(level)]; }
  /// fp32 operations a second that one core can do at best, a multiply-add counting two.
  double PeakFlops() const { return 2 * fma_units * fp32_lanes * cycles_per_second; }
  /// The nearest level that a working set of so many bytes fits in, leaving half of it to the rest
  /// of the work.
  MemoryLevel LevelFor(int64_t working_set_bytes) const;

  /// The preset of a CPU target, or of a GPU target's host.
  static MachineProfile Preset(const Target& target);
};

}  // namespace tenon
