// Rules for kernels that keep a tile of results in registers: direct and depthwise convolution,
// windows on channel blocks, packed matrix product. All share one shape: the output is tiled, the
// anchor is computed per tile in registers, its reduction loops stand outside the unrolled tile,
// and what follows the anchor happens as the tile is stored.
#include <algorithm>
#include <numeric>

#include "ops/rules.h"
#include "ops/tile.h"

namespace tenon::ops {

namespace {

/// The anchors' blocks, in program order: a definition may take several (a maximum and its NaNs,
/// say).
Names Anchors(const Schedule& s) {
  Names out;
  for (const std::string& b : s.GetBlocks()) {
    std::string role = BlockAttrs(s, b).GetString("role");
    if (role != "output" && role != "halo") out.push_back(b);
  }
  return out;
}

void ScheduleHalos(Schedule& s, const Target& target) {
  for (const std::string& b : BlocksOfRole(s, "halo")) ScheduleBlock(s, target, b);
}

/// A decision on a size of the tile: any that leaves registers for its operands, whatever the other
/// size is.
int64_t DecideSize(Schedule& s, const Target& target, const std::string& name, int64_t nv,
                   int64_t guess) {
  int64_t most = std::max(guess, (target.Cpu().NumVectorRegisters() - 1) / nv - 1);
  std::vector<int64_t> domain;
  for (int64_t i = 1; i <= most; ++i) domain.push_back(i);
  return s.Decide(name, std::move(domain), guess);
}

}  // namespace

// out[n, c, h, w] in channel blocks.
void ScheduleTile(Schedule& s, const Target& target) {
  const Attrs& attrs = s.func()->attrs;
  int64_t nv = s.Decide("nv", {1, 2, 3, 4, 5, 6, 7, 8}, attrs.GetInt("nv", 1));
  int64_t th = DecideSize(s, target, "tile_height", nv, attrs.GetInt("th", 1));
  int64_t tw = DecideSize(s, target, "tile_width", nv, attrs.GetInt("tw", 1));
  int64_t lanes = Lanes32(target);
  bool unroll_window = attrs.Get<bool>("unroll_window", false);
  Names anchors = Anchors(s);
  std::string out = BlocksOfRole(s, "output").at(0);
  Names axes = s.GetLoops(out);
  Names c = s.Split(axes[1], {-1, nv, lanes});
  Names h = s.Split(axes[2], {-1, th});
  Names w = s.Split(axes[3], {-1, tw});
  s.Reorder({axes[0], c[0], h[0], w[0], h[1], w[1], c[1], c[2]});
  for (auto it = anchors.rbegin(); it != anchors.rend(); ++it) {
    Names window;
    if (unroll_window) {
      Names reduce = s.GetReduceLoops(*it);
      if (!reduce.empty() && s.GetExtent(reduce.back()) <= 7) window = {reduce.back()};
    }
    ComputeInRegisters(s, *it, w[0], nv, lanes, 0, window);
  }
  s.Unroll(h[1]);
  s.Unroll(w[1]);
  s.Unroll(c[1]);
  s.Vectorize(c[2]);
  ParallelOuter(s, {axes[0], c[0], h[0]});
  ScheduleHalos(s, target);
}

// The loops of the output are `outer` and then the tile's: rows, vectors, lanes. The anchors are
// computed per tile, and outer loops run in parallel.
static void FillTile(Schedule& s, const Target& target, const Names& outer, int64_t nv,
                     const Names& tile) {
  s.Reorder(Concat({outer, tile}));
  Names anchors = Anchors(s);
  for (auto it = anchors.rbegin(); it != anchors.rend(); ++it) {
    ComputeInRegisters(s, *it, outer.back(), nv, Lanes32(target), SIZE_MAX, {});
  }
  s.Unroll(tile[0]);
  s.Unroll(tile[1]);
  s.Vectorize(tile[2]);
  ParallelOuter(s, outer);
  ScheduleHalos(s, target);
}

// out[…, i, j] with the second operand in panels. A block of rows that the second-level cache holds
// meets each panel in turn, so panels, which lie in one piece, are all that is streamed.
void ScheduleMatMul(Schedule& s, const Target& target) {
  const Attrs& attrs = s.func()->attrs;
  // How many vectors stand side by side in a panel is settled: the weights lie so.
  int64_t nv = attrs.GetInt("nv", 1);
  int64_t rows = DecideSize(s, target, "tile_rows", nv, attrs.GetInt("tw", 1));
  std::vector<int64_t> tiles(kMaxRowBlock);
  std::iota(tiles.begin(), tiles.end(), 1);
  int64_t block = s.Decide("row_block", std::move(tiles), attrs.GetInt("row_block", 1));
  std::string out = BlocksOfRole(s, "output").at(0);
  Names axes = s.GetLoops(out);
  size_t r = axes.size();
  Names lead(axes.begin(), axes.end() - 2);
  Names i = s.Split(axes[r - 2], {-1, block, rows});
  Names j = s.Split(axes[r - 1], {-1, nv, Lanes32(target)});
  Names outer = Concat({lead, {i[0], j[0], i[1]}});
  FillTile(s, target, outer, nv, {i[2], j[1], j[2]});
}

// out[n, m, …, w]: maps by vectors along w. The windows of a tile's width stay in the first-level
// cache while all maps go by.
void ScheduleImplicitGemm(Schedule& s, const Target& target) {
  const Attrs& attrs = s.func()->attrs;
  int64_t nv = attrs.GetInt("nv", 1);
  int64_t maps = attrs.GetInt("tw", 1);  // settled: the weights lie so
  std::string out = BlocksOfRole(s, "output").at(0);
  Names axes = s.GetLoops(out);
  Names m = s.Split(axes[1], {-1, maps});
  Names w = s.Split(axes.back(), {-1, nv, Lanes32(target)});
  Names space(axes.begin() + 2, axes.end() - 1);
  Names outer = Concat({{axes[0]}, space, {w[0], m[0]}});
  FillTile(s, target, outer, nv, {m[1], w[1], w[2]});
}

}  // namespace tenon::ops
