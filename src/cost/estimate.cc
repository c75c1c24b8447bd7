#include "cost/estimate.h"

#include <algorithm>

#include "support/check.h"

namespace tenon {

namespace {

// The largest part of all tiles that one worker has.
double CriticalShare(const WorkDescription& work) {
  if (work.tiles <= 0) return 0;
  const int64_t waves = (work.tiles + work.team - 1) / work.team;
  return static_cast<double>(waves) / static_cast<double>(work.tiles);
}

double StreamSeconds(double bytes, double share, const MemoryRate& rate) {
  return std::max(bytes * share / rate.core_bytes_per_second,
                  bytes / rate.machine_bytes_per_second);
}

}  // namespace

double EstimateSeconds(const WorkDescription& work, const MachineProfile& profile) {
  TN_CHECK(work.team >= 1 && work.tiles >= 0 && work.fma_efficiency > 0);
  const double share = CriticalShare(work);
  double busy = work.flops * share / (profile.PeakFlops() * work.fma_efficiency);
  for (size_t level = 0; level < work.bytes.size(); ++level) {
    busy = std::max(busy, StreamSeconds(work.bytes[level], share, profile.memory[level]));
  }
  const double vector_rate = profile.fma_units * profile.fp32_lanes * profile.cycles_per_second;
  const double epilogue = work.vector_ops * share / vector_rate;
  const double pack = work.packed_bytes * share / profile.pack_bytes_per_second;
  const double tiles = static_cast<double>(work.tiles) * share * profile.tile_seconds;
  const int joins = work.team > 1 ? work.barriers + 1 : 0;
  return busy + epilogue + pack + tiles + profile.launch_seconds + joins * profile.barrier_seconds;
}

double FmaEfficiency(int rows, int vectors, const MachineProfile& profile) {
  TN_CHECK(rows >= 1 && vectors >= 1);
  const double chains = static_cast<double>(rows) * vectors;
  if (chains + vectors + 1 > profile.vector_registers) return 0;
  const double by_latency = chains / (profile.fma_latency_cycles * profile.fma_units);
  const double fma_cycles = chains / profile.fma_units;
  const double load_cycles = (rows + vectors) / profile.vector_loads_per_cycle;
  return std::min({1.0, by_latency, fma_cycles / load_cycles});
}

double TileUtilisation(int64_t extent, int64_t tile) {
  TN_CHECK(extent >= 0 && tile >= 1);
  if (extent == 0) return 1;
  const int64_t padded = (extent + tile - 1) / tile * tile;
  return static_cast<double>(extent) / static_cast<double>(padded);
}

}  // namespace tenon
