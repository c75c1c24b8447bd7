// The definition, on any machine and in any layout: each block by itself, outer loops parallel, the
// loop that runs along memory in vectors; where threads run together, an element for each thread.
// Element operators by themselves have no other algorithm.
#include <algorithm>

#include "ops/group.h"
#include "ops/operations.h"
#include "ops/scheduling.h"
#include "ops/tiling.h"

namespace tenon::ops {

namespace {

bool IsFor(const Site&) { return true; }

Space SpaceOf(const Site&) { return {}; }

std::vector<Want> Wants(const Site&, const Point&) { return {}; }

// What reduces goes through memory at each step, an element at a time; everything else is a
// vector's work.
WorkDescription Work(const Site& site, const Point&) {
  constexpr double kMemoryStep = 4;
  WorkDescription work;
  for (const graph::Node& n : site.region.nodes) {
    const double operations = OperationsOf(site.region, n);
    if (HasElementDefinition(n.op)) {
      work.vector_ops += operations;
    } else {
      work.scalar_ops += kMemoryStep * operations;
    }
  }
  const double bytes = BorderBytes(site.region);
  work.bytes[site.machine.LevelFor(static_cast<int64_t>(bytes))] = bytes;
  work.team = site.machine.workers;
  work.tiles = kEnoughParts;
  return work;
}

// A block's results are shared out among the threads of a grid, each of which computes its own: the
// last axis that is long is that of a block's threads (neighbours in memory for neighbours), the
// axes around it are those of blocks.
void ScheduleOnThreads(Schedule& s, const std::string& block) {
  constexpr int64_t kThreads = 64, kLong = 32;
  const Names spatial = s.GetSpatialLoops(block), reduce = s.GetReduceLoops(block);
  Names around, alone;
  for (const std::string& loop : spatial) {
    (s.GetExtent(loop) == 1 ? alone : around).push_back(loop);
  }
  if (around.empty()) {  // one element: one thread of one block
    if (!alone.empty()) s.Bind(alone[0], ThreadAxis::kThreadIdxX);
    return;
  }
  // Sizes that are not known count as long.
  const auto length = [&](const std::string& loop) {
    const int64_t extent = s.GetExtent(loop);
    return extent < 0 ? kLong : std::min(extent, kLong);
  };
  size_t chosen = around.size() - 1;
  for (size_t i = around.size(); i-- > 0;) {
    if (length(around[i]) > length(around[chosen])) chosen = i;
  }
  const std::string along = around[chosen];
  around.erase(around.begin() + static_cast<long>(chosen));
  if (spatial.size() + reduce.size() > 1) s.Reorder(Concat({around, {along}, alone, reduce}));
  const int64_t extent = s.GetExtent(along);
  const Names parts = s.Split(along, {-1, extent < 0 ? kThreads : std::min(extent, kThreads)});
  while (around.size() > 2) {
    const std::string both = s.Fuse({around[0], around[1]});
    around.erase(around.begin());
    around[0] = both;
  }
  constexpr ThreadAxis axes[] = {ThreadAxis::kBlockIdxY, ThreadAxis::kBlockIdxZ};
  for (size_t i = 0; i < around.size(); ++i) s.Bind(around[around.size() - 1 - i], axes[i]);
  s.Bind(parts[0], ThreadAxis::kBlockIdxX);
  s.Bind(parts[1], ThreadAxis::kThreadIdxX);
}

void ScheduleIt(Schedule& s, const Parts& parts, const Machine& machine, const Point&) {
  for (const std::string& block : s.GetBlocks()) {
    if (machine.warp > 0) {
      ScheduleOnThreads(s, block);
    } else {
      ScheduleBlock(s, parts, machine, block);
    }
  }
}

}  // namespace

extern const Algorithm kDefinition;
const Algorithm kDefinition = {"definition", {}, IsFor, SpaceOf, Wants, Work, nullptr, ScheduleIt};

}  // namespace tenon::ops
