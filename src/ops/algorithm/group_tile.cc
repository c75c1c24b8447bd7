// A block of one or two warpgroups has a tile of the result, each of them 64 of its rows. Step by
// step of k, tiles of both factors are copied to shared memory, up to `stages` - 1 steps ahead, by
// copies that nobody waits for; the products of a step read them there. How elements lie in shared
// memory is the unit's (intrin/ptx_hopper.cc). Results leave from registers, with what follows.
//
//   out[…, i, j]  →  blocks over …, i / tile, j / tile:
//                      groups over 64 rows:
//                        for steps (pipelined): a and b of a later step to shared memory
//                          sums += a · b
//                        each thread stores its sums, with what follows; or they pass through
//                        shared memory, and all threads store whole lines
#include "ops/algorithm/group_tile.h"

#include <fmt/format.h>

#include <algorithm>

#include "intrin/ptx_hopper.h"
#include "ops/tiling.h"

namespace tenon::ops {

namespace {

constexpr int64_t kGroupRows = 64, kGroupDepth = 64;  // of a group's product
constexpr int64_t kGroupThreads = 128;                // of a group
constexpr int64_t kGroupPiece = 8;                    // elements of 16 bytes
constexpr int64_t kStagedPadding = 8;                 // of a row of sums in shared memory

int64_t GroupsOf(const Point& point) { return ValueOf(point, "groups"); }

}  // namespace

bool IsGroupTile(const Point& point) {
  return std::any_of(point.begin(), point.end(),
                     [](const graph::Choice& c) { return c.name == "groups"; });
}

bool IsStagedGroupTile(const Point& point) { return ValueOf(point, "staged") == 1; }

int64_t GroupTileRows(const Point& point) { return GroupsOf(point) * kGroupRows; }

bool HasGroupTiles(const WarpShape& shape, const Machine& machine) {
  return WarpgroupUnit(machine, shape.type) && shape.a_vector == kGroupPiece &&
         shape.b_vector == kGroupPiece && shape.k % kGroupDepth == 0;
}

Space GroupTileSpace(const WarpShape& shape, const Machine& machine) {
  const int64_t bytes = shape.type.Bytes();
  Space space;
  const Expr groups = space.Add({"groups", {1, 2}, false, true});
  const Expr columns = space.Add({"columns", {64, 128, 256}, false, true});
  const Expr depth = space.Add({"depth", {kGroupDepth}, false, true});
  const Expr stages = space.Add({"stages", {2, 3, 4, 6}, false, true});
  const Expr parts = space.Add({"parts", {1, 2, 3, 4, 6, 8, 12, 16}, false, true});
  space.Add({"b_along_k", {shape.b_along_k ? 1 : 0}, false, true});
  // Sums of parts go where they are added up.
  const Expr staged = space.Add({"staged", {0, 1}, false, true});
  space.Add({"out_vector", {shape.out_vector}, false, true});
  space.Require(Or(Eq(staged, IndexConst(0)), Eq(parts, IndexConst(1))));
  const Expr rows = groups * IndexConst(kGroupRows);
  space.Require(Le((rows + columns) * depth * stages * IndexConst(bytes) +
                       staged * rows * (columns + IndexConst(kStagedPadding)) * IndexConst(4),
                   IndexConst(machine.memory[0].capacity_bytes)));
  // All threads of a block have some pieces in each turn.
  space.Require(
      Eq(columns * depth % (groups * IndexConst(kGroupThreads * kGroupPiece)), IndexConst(0)));
  const Expr steps = IndexConst(shape.k / kGroupDepth);
  space.Require(Eq(steps % parts, IndexConst(0)));
  space.Require(Or(Eq(parts, IndexConst(1)), Le(parts * IndexConst(2), steps)));
  return space;
}

// How many such blocks a multiprocessor has room for: tiles of all stages in its shared memory, and
// the sums of a thread in its registers, beside what else it holds.
static double BlocksTogether(const WarpShape& shape, const Point& point, const Machine& machine) {
  constexpr int64_t kOtherRegisters = 56, kRegisters = 64 << 10, kReserved = 1 << 10, kMost = 16;
  const int64_t groups = GroupsOf(point), columns = WarpTileColumns(point);
  const int64_t tiles = (WarpTileRows(point) + columns) * kGroupDepth * shape.type.Bytes();
  const int64_t sums = WarpTileRows(point) * (columns + kStagedPadding) * 4;
  const int64_t shared =
      tiles * ValueOf(point, "stages") + (IsStagedGroupTile(point) ? sums : 0) + kReserved;
  const int64_t registers = groups * kGroupThreads * (columns / 2 + kOtherRegisters);
  return static_cast<double>(std::clamp<int64_t>(
      std::min(machine.memory[0].capacity_bytes / shared, kRegisters / registers), 1, kMost));
}

// In a step threads begin copies, meet, and wait for their products, one after the other; only
// other blocks of a multiprocessor do something else in the meantime. Sums leave from registers, 4
// bytes a thread, which takes memory longer than whole lines do. What is constant was measured on
// an H200, in cycles: a least-squares fit over the points of 45 products and convolutions.
WorkDescription GroupTileWork(const WarpShape& shape, const Site& site, const Point& point) {
  constexpr double kStepCycles = 220, kBlockCycles = 400, kProducts = 1.25;
  const double store_cycles = IsStagedGroupTile(point) ? 0.06 : 0.2;
  const Machine& machine = site.machine;
  const ComputeUnit& unit = *WarpgroupUnit(machine, shape.type);
  const int64_t rows = WarpTileRows(point), columns = WarpTileColumns(point);
  const int64_t parts = ValueOf(point, "parts"), stages = ValueOf(point, "stages");
  const int64_t blocks = shape.Lead() * CeilDiv(shape.m, rows) * CeilDiv(shape.n, columns) * parts;
  const int64_t steps_per_block = WarpTileDepth(shape, point) / kGroupDepth / parts;
  const auto steps = static_cast<double>(steps_per_block);
  // Of all that a multiprocessor has to do, what it does side by side.
  const auto own = static_cast<double>(CeilDiv(blocks, machine.workers));
  const double together = std::min(own, BlocksTogether(shape, point, machine));
  const double per_cycle =
      static_cast<double>(unit.m * unit.n * unit.k) * unit.per_second / machine.cycles_per_second;
  const auto sums = static_cast<double>(rows * columns);
  const double products = kProducts * sums * kGroupDepth / per_cycle;
  // With few stages, what has been begun is waited for.
  const double wait = kStepCycles * static_cast<double>(stages) / static_cast<double>(stages - 1);
  return BlocksWork(
      shape, site, point,
      steps * (products + wait / together) + kBlockCycles / together + store_cycles * sums, 1);
}

namespace {

// All threads of a block bring a tile.
void BringGroupTile(Schedule& s, const std::string& block, DType type, const Point& point) {
  const Names loops = s.GetLoops(block);
  if (!s.ok()) return;
  const std::string all = s.Fuse({loops[loops.size() - 2], loops.back()});
  const Names parts = s.Split(all, {-1, GroupsOf(point), kGroupThreads, kGroupPiece});
  s.Unroll(parts[0]);
  s.Bind(parts[1], ThreadAxis::kThreadIdxY);
  s.Bind(parts[2], ThreadAxis::kThreadIdxX);
  BringPiece(s, block, type, parts[3], kGroupPiece);
}

// The sums of the group that has `at`, and the tiles that they are made of.
void ScheduleGroupProducts(Schedule& s, const std::string& sums, const Names& tiles,
                           const std::string& at, const Point& point) {
  const DType type = WrittenType(s, tiles[0]);
  s.SetScope(WrittenBuffer(s, sums), Scope::kFragment);
  s.ComputeAt(sums, at);
  const InnerLoops in = LoopsInside(s, sums, at);
  if (!s.ok()) return;
  const size_t r = in.spatial.size();
  const Names k = s.Split(in.reduce[0], {-1, kGroupDepth});
  const std::string rows = in.spatial[r - 2];
  s.Reorder({k[0], rows, in.spatial[r - 1], k[1]});
  for (const std::string& tile : tiles) {
    s.SetScope(WrittenBuffer(s, tile), Scope::kShared);
    s.ComputeAt(tile, k[0]);
  }
  s.DecomposeReduction(sums, k[0]);
  // Products first: then a tile is written over only by copies that begin after the products that
  // read it.
  s.SoftwarePipeline(k[0], {0, 0, ValueOf(point, "stages") - 1}, {1, 2, 0});
  for (const std::string& tile : tiles) BringGroupTile(s, tile, type, point);
  s.Tensorize(rows,
              fmt::format("{}{}k{}.{}{}", kWarpgroupRows, ValueOf(point, "columns"), kGroupDepth,
                          type.ToString(), ValueOf(point, "b_along_k") == 1 ? ".t" : ""));
}

}  // namespace

namespace {

// The loops of a tile of sums, rows and columns: a group has 64 rows, and its lanes neighbours in
// each. Returns the loop over groups.
std::string ShareSums(Schedule& s, const std::string& rows, const std::string& columns,
                      const Point& point) {
  const Names group = s.Split(rows, {GroupsOf(point), kGroupRows});
  s.Bind(group[0], ThreadAxis::kThreadIdxY);
  s.Vectorize(columns);
  return group[0];
}

// Sums leave through shared memory, so that all threads of a block store whole lines. Returns the
// loop over groups that has the sums.
std::string StageSums(Schedule& s, const std::string& made, const Names& inner,
                      const std::string& block, const Point& point) {
  const std::string all = s.Fuse(inner);
  const int64_t vector = ValueOf(point, "out_vector");
  const Names parts = s.Split(all, {-1, GroupsOf(point), kGroupThreads, vector});
  s.Unroll(parts[0]);
  s.Bind(parts[1], ThreadAxis::kThreadIdxY);
  s.Bind(parts[2], ThreadAxis::kThreadIdxX);
  if (vector > 1) s.Vectorize(parts[3]);
  const std::string staged = WrittenBuffer(s, made);
  s.SetScope(staged, Scope::kShared);
  s.ComputeAt(made, block);
  const Names tile = LoopsInside(s, made, block).spatial;
  if (!s.ok()) return "";
  s.StorageAlign(staged, WrittenRank(s, made) - 2, 32, kStagedPadding);
  return ShareSums(s, tile[tile.size() - 2], tile.back(), point);
}

}  // namespace

void ScheduleGroupTiles(Schedule& s, const Parts& parts, const Machine&, const Point& point,
                        const WarpOrder& order) {
  // a, b, and sums of parts or in shared memory.
  const Names moves = BlocksOf(s, parts, BlockRole::kMove);
  const std::string sums = OnlyBlock(s, parts, BlockRole::kAnchor);
  const std::string store = OnlyBlock(s, parts, BlockRole::kOutput);
  const bool in_parts = ValueOf(point, "parts") > 1, staged = IsStagedGroupTile(point);
  if (!s.ok() || moves.size() != (in_parts || staged ? 3 : 2)) return;
  if (in_parts) ScheduleTotal(s, parts, order.columns);
  const Names axes = s.GetLoops(in_parts ? moves[2] : store);
  if (!s.ok()) return;
  const WarpOrder own = in_parts ? WarpOrder{} : order;
  const auto fused = [&](Names loops) { return loops.size() > 1 ? s.Fuse(loops) : loops[0]; };
  const auto columns = axes.end() - static_cast<long>(own.columns);
  const auto rows = columns - static_cast<long>(own.rows);
  const std::string j = fused({columns, axes.end()}), i = fused({rows, columns});
  Names inner;
  const std::string block = BindTiles(s, {axes.begin(), rows}, i, j, point, &inner);
  if (!s.ok()) return;
  const std::string group = staged ? StageSums(s, moves[2], inner, block, point)
                                   : ShareSums(s, inner[0], inner[1], point);
  if (s.ok()) ScheduleGroupProducts(s, sums, {moves[0], moves[1]}, group, point);
}

}  // namespace tenon::ops
