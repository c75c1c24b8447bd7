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
  return std::max(bytes * share / rate.worker_bytes_per_second,
                  bytes / rate.machine_bytes_per_second);
}

double StreamCycles(const Stream& stream, const Machine& machine) {
  if (stream.bytes == 0 || stream.level >= machine.memory.size()) return 0;
  return stream.bytes / machine.memory[stream.level].worker_bytes_per_second *
         machine.cycles_per_second;
}

// What of overlapped work still shows behind the slowest part.
constexpr double kShows = 0.1;

}  // namespace

void WorkDescription::AddTileSteps(int64_t rows, int64_t vectors, double steps,
                                   const Stream& stream) {
  if (rows <= 0 || vectors <= 0 || steps <= 0) return;
  for (TileSteps& t : tile_steps) {
    if (t.steps != 0 && (t.rows != rows || t.vectors != vectors || t.stream != stream)) continue;
    t = {rows, vectors, t.steps + steps, stream};
    return;
  }
  TN_UNREACHABLE();
}

double StepCycles(int64_t rows, int64_t vectors, const Machine& machine, const ComputeUnit& unit) {
  const double units = unit.per_second / machine.cycles_per_second;
  const auto loads_of = [&](int64_t elements, DType type) {
    const int64_t bits = elements * type.StorageBits();
    return std::max<int64_t>(1, (bits + machine.vector_bits - 1) / machine.vector_bits);
  };
  const int64_t loads =
      rows * loads_of(unit.m * unit.k, unit.a) + vectors * loads_of(unit.k * unit.n, unit.b);
  // Vectors of multiply-adds take operands of their own type: others are converted.
  int64_t operations = rows * vectors;
  if (unit.row.empty() && unit.a != unit.acc) operations += rows;
  if (unit.row.empty() && unit.b != unit.acc) operations += vectors;
  return std::max({static_cast<double>(operations) / units,
                   static_cast<double>(loads) / machine.vector_loads_per_cycle,
                   machine.fma_latency_cycles}) +
         machine.loop_cycles;
}

// How many times as long a step takes that holds so many tiles of sums and operands, on a core that
// is shared half of the time: fitted to docs/decisions/134-tiles-on-a-shared-core.md.
static double WaitForTiles(int64_t rows, int64_t columns) {
  constexpr int64_t kFree = 5;  // tiles
  constexpr double kEachTile = 0.15, kEachRow = 0.2;
  const int64_t held = rows * columns + rows + columns;
  return 1 + kEachTile * static_cast<double>(std::max<int64_t>(held - kFree, 0)) +
         kEachRow * static_cast<double>(rows - 1);
}

double EstimateSeconds(const WorkDescription& work, const Machine& machine) {
  TN_CHECK(work.team >= 1 && work.tiles >= 0);
  const double share = CriticalShare(work);
  double cycles = 0, waits = 0, slowed = 1;
  const ComputeUnit& unit = machine.VectorUnit(work.type);
  const bool in_tiles = work.unit && work.unit->m > 1;
  for (const TileSteps& t : work.tile_steps) {
    if (t.steps <= 0) continue;
    if (in_tiles) slowed = std::max(slowed, WaitForTiles(t.rows, t.vectors));
    const double step = StepCycles(t.rows, t.vectors, machine, work.unit ? *work.unit : unit);
    cycles += t.steps * step;
    waits += t.steps * std::max(StreamCycles(t.stream, machine) - step, 0.0);
  }
  const double lanes = static_cast<double>(unit.n);
  const double compute = cycles * share / machine.cycles_per_second +
                         work.vector_ops * share / (unit.per_second * lanes) +
                         work.scalar_ops * share / unit.per_second;
  double slowest = compute, all = compute;
  for (size_t level = 0; level < machine.memory.size() && level < kMostMemoryLevels; ++level) {
    const double seconds = StreamSeconds(work.bytes[level], share, machine.memory[level]);
    slowest = std::max(slowest, seconds);
    all += seconds;
  }
  const double waiting = compute + waits * share / machine.cycles_per_second;
  const double busy = slowed * (std::max(slowest, waiting) + kShows * (all - slowest));
  const double pack = work.packed_bytes * share / machine.pack_bytes_per_second;
  const int64_t joins = work.team > 1 ? work.barriers + 1 : 0;
  return busy + pack + machine.launch_seconds +
         static_cast<double>(joins) * machine.barrier_seconds;
}

double RelayoutSeconds(int64_t bytes, const Machine& machine) {
  WorkDescription work;
  work.packed_bytes = static_cast<double>(bytes);
  work.team = machine.workers;
  work.tiles = machine.workers;
  return EstimateSeconds(work, machine);
}

}  // namespace tenon
