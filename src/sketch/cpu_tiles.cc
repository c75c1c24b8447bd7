#include "sketch/cpu_tiles.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/scheduling.h"

namespace tenon::sketch {

std::string Named(const std::string& block, const char* what) {
  return fmt::format("{}.{}", block, what);
}
std::string Named(const std::string& block, size_t axis, const char* what) {
  return fmt::format("{}.{}.{}", block, axis, what);
}

int64_t LanesFor(const Machine& machine, DType type, int64_t extent) {
  int64_t lanes = machine.Lanes(type);
  while (lanes > 1 && lanes > extent) lanes /= 2;
  return lanes;
}

Names LongOnes(const Names& loops, const std::vector<int64_t>& extents) {
  Names out;
  for (size_t i = 0; i < loops.size(); ++i)
    if (extents[i] != 1) out.push_back(loops[i]);
  return out;
}

void ShareOut(Draft* d, const std::string& block, const Names& outer) {
  std::vector<int64_t> domain;
  for (size_t i = 0; i <= outer.size(); ++i) domain.push_back(static_cast<int64_t>(i));
  // A guess that is enough for a few cores.
  int64_t guess = 0, parts = 1;
  for (const std::string& loop : outer) {
    if (parts >= 16) break;
    parts *= std::max<int64_t>(1, d->schedule.GetExtent(loop));
    ++guess;
  }
  const int64_t count = d->Choose(Named(block, "parallel"), domain, guess, true);
  ops::ParallelFirst(d->schedule, outer, count);
}

Tile CutTile(Draft* d, const std::string& block, const Names& axes, DType type, bool exact) {
  const auto sizes_of = exact ? Divisors : TileSizes;
  Schedule& s = d->schedule;
  Tile t;
  const int64_t registers = std::max<int64_t>(8, d->machine->registers);
  Expr used;
  const size_t last = axes.size() - 1;
  for (size_t a = 0; a < axes.size(); ++a) {
    const int64_t extent = s.GetExtent(axes[a]);
    const bool in_vectors = a == last;
    t.lanes = in_vectors ? LanesFor(*d->machine, type, extent) : t.lanes;
    const int64_t pieces = in_vectors ? (extent + t.lanes - 1) / t.lanes : extent;
    if (extent <= 1 || (pieces <= 1 && t.lanes <= 1)) {
      t.outer.push_back(axes[a]);
      t.block.emplace_back();
      t.inner.emplace_back();
      continue;
    }
    const std::vector<int64_t> sizes = sizes_of(pieces, in_vectors ? 6 : 14);
    const std::string tile = Named(block, a, in_vectors ? "vectors" : "tile");
    const std::string around = Named(block, a, "block");
    d->Choose(tile, sizes, Nearest(sizes, in_vectors ? 2 : a + 2 > axes.size() - 1 ? 4 : 1));
    const std::vector<int64_t> blocks = sizes_of(pieces, 64);
    d->Choose(around, blocks, Nearest(blocks, in_vectors ? 1 : 4));
    const Expr both = d->VarOf(tile) * d->VarOf(around);
    d->Require(exact ? Eq(IndexConst(pieces) % both, IndexConst(0))
                     : Le(both, IndexConst(2 * pieces - 1)));
    used = used ? used * d->VarOf(tile) : d->VarOf(tile);
    Names parts = {"-1", Draft::Ref(around), Draft::Ref(tile)};
    if (in_vectors && t.lanes > 1) parts.push_back(std::to_string(t.lanes));
    const Names loops = s.SplitBy(axes[a], parts);
    t.outer.push_back(loops[0]);
    t.cut.push_back(loops[0]);
    t.block.push_back(loops[1]);
    t.inner.push_back(loops[2]);
    if (in_vectors && t.lanes > 1) t.lane = loops[3];
  }
  if (used) d->Require(Le(used, IndexConst(registers)));
  t.vectors = t.inner.back();
  return t;
}

Names WithoutEmpty(const Names& names) { return ops::Concat({names}); }

std::string StoreOf(Draft* d, const BlockView& v, Scope scope) {
  Schedule& s = d->schedule;
  const std::string follower = FollowerOf(s, v);
  if (!follower.empty()) {
    s.SetScope(v.buffer, scope);
    return follower;
  }
  return s.CacheWrite(v.name, v.buffer, scope);
}

}  // namespace tenon::sketch
