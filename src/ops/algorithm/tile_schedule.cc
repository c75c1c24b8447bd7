#include "ops/algorithm/tile_schedule.h"

namespace tenon::ops {

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
  s.Reorder(Concat({{axes[0], c[0], h[0], w[0], h[1], w[1], c[1], c[2]}}));
  for (auto it = anchors.rbegin(); it != anchors.rend(); ++it) {
    Names window;
    if (unroll_window) {
      Names reduce = s.GetReduceLoops(*it);
      if (!reduce.empty() && s.GetExtent(reduce.back()) <= 7) window = {reduce.back()};
    }
    const MicroKernel kernel = KernelOf(machine, PartOf(parts, *it).row, WrittenType(s, *it));
    // Where an operation of the table takes the sums, channels are their last axis.
    ComputeInRegisters(s, *it, w[0], "$nv", kernel, kernel.IsPlain() ? 0 : SIZE_MAX, window);
  }
  if (has_rows) s.Unroll(h[1]);
  s.Unroll(w[1]);
  s.Unroll(c[1]);
  s.Vectorize(c[2]);
  ParallelFirst(s, {axes[0], c[0], has_rows ? h[0] : w[0]}, ValueOf(point, "parallel_loops"));
  ScheduleHalos(s, parts, machine);
}

void FillTile(Schedule& s, const Parts& parts, const Machine& machine, const Point& point,
              const Names& outer, const Names& tile,
              const std::function<void(const std::string& anchor, const std::string& k)>& along_k) {
  s.Reorder(Concat({outer, tile}));
  const Names anchors = BlocksOf(s, parts, BlockRole::kAnchor);
  for (auto it = anchors.rbegin(); it != anchors.rend(); ++it) {
    const MicroKernel kernel = KernelOf(machine, PartOf(parts, *it).row, WrittenType(s, *it));
    ComputeInRegisters(s, *it, outer.back(), "$nv", kernel, SIZE_MAX, {},
                       [&](const std::string& k) {
                         if (along_k) along_k(*it, k);
                       });
  }
  s.Unroll(tile[0]);
  s.Unroll(tile[1]);
  s.Vectorize(tile[2]);
  ParallelFirst(s, outer, ValueOf(point, "parallel_loops"));
  ScheduleHalos(s, parts, machine);
}

}  // namespace tenon::ops
