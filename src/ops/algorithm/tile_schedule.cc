#include "ops/algorithm/tile_schedule.h"

#include <algorithm>
#include <utility>

#include "ops/tiling.h"

namespace tenon::ops {

// While the tiles inside a turn of `panels` read one panel, the next one is asked for, a line every
// few steps along the reduction: asked for when it is needed it would come too late, and all at
// once it would stand in the way. Not where panels are so small that they stay in the nearest
// level. Where a tile has less than two steps for a line, it asks for what itself will read, a bit
// ahead: a core does that by itself only as far as its operations under way reach, and those of
// several rows are many.
static void AskForNextPanel(Schedule& s, const std::string& anchor, const std::string& panels,
                            const Names& outer, const Names& reduce, const Machine& machine,
                            const Point& point) {
  constexpr int64_t kLineBytes = 64, kMostApart = 16, kAheadBytes = 6 << 10;
  constexpr size_t kThirdLevel = 2;
  const auto at = std::find(outer.begin(), outer.end(), panels);
  if (at == outer.end()) return;
  const std::string operand = ReadAlong(s, anchor, panels, reduce.back());
  int64_t steps = 1, tiles = 1;
  for (const std::string& l : reduce) steps *= s.GetExtent(l);
  for (auto l = at + 1; l != outer.end(); ++l) tiles *= s.GetExtent(*l);
  const int64_t step_bytes = ValueOf(point, "nv") * machine.vector_bits / 8;
  const int64_t bytes = steps * step_bytes, count = s.GetExtent(panels);
  const int64_t lines = bytes / kLineBytes, last = s.GetExtent(reduce.back());
  if (!s.ok() || operand.empty() || count < 2) return;
  int64_t apart = 1;
  while (apart < kMostApart && last % (2 * apart) == 0 && lines * 2 * apart <= tiles * steps) {
    apart *= 2;
  }
  Schedule tried = s;  // where a panel's size is not known, nothing is asked for
  if (apart == 1) {
    if (machine.LevelFor(bytes * count) < kThirdLevel) return;
    tried.Prefetch(anchor, operand, reduce.back(), CeilDiv(kAheadBytes, step_bytes));
  } else {
    if (machine.LevelFor(bytes) == 0) return;
    const std::string over = apart == last && reduce.size() > 1
                                 ? reduce[reduce.size() - 2]
                                 : tried.Split(reduce.back(), {-1, apart})[0];
    tried.SpreadPrefetch(anchor, operand, panels, 1, over);
  }
  if (tried.ok()) s = std::move(tried);
}

void ScheduleBlockedTile(Schedule& s, const Parts& parts, const Machine& machine,
                         const Point& point, bool unroll_window) {
  const int64_t lanes = machine.Lanes(DType::Float(32));
  // A definition may take several anchors (a maximum and its NaNs, say).
  const Names anchors = BlocksOf(s, parts, BlockRole::kAnchor);
  const std::string out = OnlyBlock(s, parts, BlockRole::kOutput);
  Names axes = s.GetLoops(out);
  Names c = s.SplitBy(axes[1], {"-1", "$nv", std::to_string(lanes)});
  // Sums whose positions stand in no rows: those of the result are as well one behind the other.
  if (axes.size() > 3 && s.GetSpatialLoops(anchors[0]).size() < axes.size()) {
    axes[2] = s.Fuse({axes[2], axes[3]});
    axes.pop_back();
  }
  const bool has_rows = axes.size() > 3;
  Names h = has_rows ? s.SplitBy(axes[2], {"-1", "$tile_height"}) : Names{"", ""};
  Names w = s.SplitBy(axes.back(), {"-1", "$tile_width"});
  const Names outer = Concat({{axes[0], c[0], h[0], w[0]}});
  s.Reorder(Concat({outer, {h[1], w[1], c[1], c[2]}}));
  for (auto it = anchors.rbegin(); it != anchors.rend(); ++it) {
    Names window;
    if (unroll_window) {
      Names reduce = s.GetReduceLoops(*it);
      if (!reduce.empty() && s.GetExtent(reduce.back()) <= 7) window = {reduce.back()};
    }
    const MicroKernel kernel = KernelOf(machine, PartOf(parts, *it).row, WrittenType(s, *it));
    // Where an operation of the table takes the sums, channels are their last axis.
    ComputeInRegisters(
        s, *it, w[0], "$nv", kernel, kernel.IsPlain() ? 0 : SIZE_MAX, window,
        [&](const Names& reduce) { AskForNextPanel(s, *it, c[0], outer, reduce, machine, point); });
  }
  if (has_rows) s.Unroll(h[1]);
  s.Unroll(w[1]);
  s.Unroll(c[1]);
  s.Vectorize(c[2]);
  ParallelFirst(s, {axes[0], c[0], has_rows ? h[0] : w[0]}, ValueOf(point, "parallel_loops"));
  ScheduleHalos(s, parts, machine);
}

void FillTile(Schedule& s, const Parts& parts, const Machine& machine, const Point& point,
              const Names& outer, const Names& tile, const std::string& panels) {
  s.Reorder(Concat({outer, tile}));
  const Names anchors = BlocksOf(s, parts, BlockRole::kAnchor);
  for (auto it = anchors.rbegin(); it != anchors.rend(); ++it) {
    const MicroKernel kernel = KernelOf(machine, PartOf(parts, *it).row, WrittenType(s, *it));
    ComputeInRegisters(s, *it, outer.back(), "$nv", kernel, SIZE_MAX, {}, [&](const Names& reduce) {
      AskForNextPanel(s, *it, panels, outer, reduce, machine, point);
    });
  }
  s.Unroll(tile[0]);
  s.Unroll(tile[1]);
  s.Vectorize(tile[2]);
  ParallelFirst(s, outer, ValueOf(point, "parallel_loops"));
  ScheduleHalos(s, parts, machine);
}

}  // namespace tenon::ops
