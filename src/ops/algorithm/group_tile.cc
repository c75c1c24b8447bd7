// A block of one or two warpgroups has a tile of the result, each of them 64 of its rows. Step by
// step of k, tiles of both factors are copied to shared memory, up to `stages` - 1 steps ahead, by
// copies that nobody waits for; the products of a step read them there. Where operands are matrices
// as they lie and tiles whole ones, the copy engine may bring them, which a further warpgroup keeps
// busy. How elements lie in shared memory is the unit's (intrin/ptx_hopper.cc). Threads exchange
// their sums, so that each has eight neighbours of a row, and store them with what follows.
//
//   out[…, i, j]  →  blocks over …, i / tile, j / tile:
//                      groups over 64 rows:
//                        for steps (pipelined): a and b of a later step to shared memory
//                          sums += a · b
//                        for 32 columns each: sums to their neighbours; each thread stores its own
//
// Sums of parts of k are stored as they are, and added up by a second launch (warp_tile.h).
#include "ops/algorithm/group_tile.h"

#include <fmt/format.h>

#include <algorithm>

#include "intrin/ptx_hopper.h"
#include "loop/warpgroup.h"
#include "ops/tiling.h"

namespace tenon::ops {

namespace {

constexpr int64_t kGroupRows = 64, kGroupDepth = 64;  // of a group's product
constexpr int64_t kGroupThreads = 128;                // of a group
constexpr int64_t kGroupPiece = 8;                    // elements of 16 bytes

int64_t GroupsOf(const Point& point) { return ValueOf(point, "groups"); }

}  // namespace

bool IsGroupTile(const Point& point) {
  return std::any_of(point.begin(), point.end(),
                     [](const graph::Choice& c) { return c.name == "groups"; });
}

static bool HasEngine(const Point& point) { return ValueOf(point, "engine") == 1; }

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
  // The copy engine brings whole tiles, in a loop, and its warpgroup waits for nobody beside them.
  std::vector<int64_t> engines = {0};
  if (shape.matrices && shape.k > kGroupDepth) engines.push_back(1);
  const Expr engine = space.Add({"engine", engines, false, true});
  const auto divides = [&](const Expr& tile, int64_t size) {
    space.Require(Or(Eq(engine, IndexConst(0)), Eq(IndexConst(size) % tile, IndexConst(0))));
  };
  divides(groups * IndexConst(kGroupRows), shape.m);
  divides(columns, shape.n);
  const Expr rows = groups * IndexConst(kGroupRows);
  // The rings of barriers besides.
  constexpr int64_t kBarriers = 256;
  space.Require(Le((rows + columns) * depth * stages * IndexConst(bytes) + IndexConst(kBarriers),
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
  const int64_t groups = GroupsOf(point) + (HasEngine(point) ? 1 : 0);
  const int64_t columns = WarpTileColumns(point);
  const int64_t tiles = (WarpTileRows(point) + columns) * kGroupDepth * shape.type.Bytes();
  const int64_t shared = tiles * ValueOf(point, "stages") + kReserved;
  const int64_t registers = groups * kGroupThreads * (columns / 2 + kOtherRegisters);
  return static_cast<double>(std::clamp<int64_t>(
      std::min(machine.memory[0].capacity_bytes / shared, kRegisters / registers), 1, kMost));
}

// In a step threads begin copies, meet, and wait for their products, one after the other; only
// other blocks of a multiprocessor do something else in the meantime, or, where the copy engine
// brings the tiles, other groups. With few stages, what has been begun is waited for. What is
// constant was measured on an H200, in cycles: a fit over the points of 27 products and
// convolutions (docs/decisions/136-tiles-by-the-copy-engine.md).
WorkDescription GroupTileWork(const WarpShape& shape, const Site& site, const Point& point) {
  constexpr double kWaitCycles = 440, kStoreCycles = 0.2, kSharedReads = 0.6;
  // Of the unit's own time, and of a step where the engine's barriers are waited for.
  constexpr double kProducts = 1.2, kEngineProducts = 0.8, kEngineCycles = 200;
  constexpr int64_t kSecondLaunch = 2;  // barriers
  const bool engine = HasEngine(point);
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
  const double products = (engine ? kEngineProducts : kProducts) * sums * kGroupDepth / per_cycle;
  const double wait = (engine ? kEngineCycles : 0) + kWaitCycles / static_cast<double>(stages - 1);
  const double others = together * (engine ? static_cast<double>(GroupsOf(point)) : 1);
  WorkDescription work = BlocksWork(
      shape, site, point, steps * (products + wait / others) + kStoreCycles * sums / together,
      kSecondLaunch);
  // Blocks that read the same at the same time share what the second-level cache gives.
  work.bytes[1] *= kSharedReads;
  return work;
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

// Whether rows of what the block reads begin at multiples of 16 bytes in their matrix, as the copy
// engine wants them; those with a border need not.
bool ReadsWholePieces(const Schedule& s, const std::string& block) {
  const Block* b = FindBlock(s.func(), block);
  return b && std::all_of(b->reads.begin(), b->reads.end(), [](const Region& r) {
           const auto columns = AsInt(r->buffer->shape.back());
           return r->buffer->rank() >= 2 && columns && *columns % kGroupPiece == 0;
         });
}

// The copy engine brings a tile, box by box.
void BringGroupBoxes(Schedule& s, const std::string& block, DType type) {
  const Names loops = s.GetLoops(block);
  if (!s.ok()) return;
  const Names i = s.Split(loops[loops.size() - 2], {-1, kBulkCopySide});
  const Names j = s.Split(loops.back(), {-1, kBulkCopySide});
  s.Reorder({i[0], j[0], i[1], j[1]});
  s.Tensorize(i[1], kBulkCopyRows + type.ToString());
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
  const int64_t stages = ValueOf(point, "stages");
  // Where operands are stored with borders is decided after the point is: threads copy then.
  const bool whole = std::all_of(tiles.begin(), tiles.end(), [&](const std::string& tile) {
    return ReadsWholePieces(s, tile);
  });
  if (HasEngine(point) && whole) {
    s.Annotate(k[0], kProducerStagesAttr, stages);
    for (const std::string& tile : tiles) BringGroupBoxes(s, tile, type);
  } else {
    // Products first: then a tile is written over only by copies that begin after the products that
    // read it.
    s.SoftwarePipeline(k[0], {0, 0, stages - 1}, {1, 2, 0});
    for (const std::string& tile : tiles) BringGroupTile(s, tile, type, point);
  }
  s.Tensorize(rows,
              fmt::format("{}{}k{}.{}{}", kWarpgroupRows, ValueOf(point, "columns"), kGroupDepth,
                          type.ToString(), ValueOf(point, "b_along_k") == 1 ? ".t" : ""));
}

// The loops of a tile of sums, rows and columns: a group has 64 rows, and its lanes neighbours in
// each. Returns the loop over groups.
std::string ShareSums(Schedule& s, const std::string& rows, const std::string& columns,
                      const Point& point) {
  const Names group = s.Split(rows, {GroupsOf(point), kGroupRows});
  s.Bind(group[0], ThreadAxis::kThreadIdxY);
  s.Vectorize(columns);
  return group[0];
}

// The same where threads exchange sums first, so that each stores eight neighbours at once.
std::string TurnSums(Schedule& s, const std::string& made, const Names& inner, const Point& point) {
  const Names group = s.Split(inner[0], {GroupsOf(point), kGroupRows});
  const Names columns = s.Split(inner[1], {-1, kWarpgroupTurnColumns});
  s.Reorder({group[0], columns[0], group[1], columns[1]});
  s.Bind(group[0], ThreadAxis::kThreadIdxY);
  s.Unroll(columns[0]);
  s.Vectorize(columns[1]);
  s.SetScope(WrittenBuffer(s, made), Scope::kFragment);
  s.ComputeAt(made, columns[0]);
  return group[0];
}

}  // namespace

void ScheduleGroupTiles(Schedule& s, const Parts& parts, const Machine&, const Point& point,
                        const WarpOrder& order) {
  // a, b, and what becomes of the sums.
  const Names moves = BlocksOf(s, parts, BlockRole::kMove);
  const std::string sums = OnlyBlock(s, parts, BlockRole::kAnchor);
  const std::string store = OnlyBlock(s, parts, BlockRole::kOutput);
  const bool in_parts = ValueOf(point, "parts") > 1;
  if (!s.ok() || moves.size() != 3) return;
  if (in_parts) ScheduleTotal(s, parts, order.columns);
  const Names axes = s.GetLoops(in_parts ? moves[2] : store);
  if (!s.ok()) return;
  const WarpOrder own = in_parts ? WarpOrder{} : order;
  const auto fused = [&](Names loops) { return loops.size() > 1 ? s.Fuse(loops) : loops[0]; };
  const auto columns = axes.end() - static_cast<long>(own.columns);
  const auto rows = columns - static_cast<long>(own.rows);
  const std::string j = fused({columns, axes.end()}), i = fused({rows, columns});
  Names inner;
  BindTiles(s, {axes.begin(), rows}, i, j, point, &inner);
  if (!s.ok()) return;
  const std::string group =
      in_parts ? ShareSums(s, inner[0], inner[1], point) : TurnSums(s, moves[2], inner, point);
  if (!s.ok()) return;
  ScheduleGroupProducts(s, sums, {moves[0], moves[1]}, group, point);
  if (in_parts) return;
  const Names loops = s.GetLoops(moves[2]);
  if (s.ok()) s.Tensorize(loops[loops.size() - 2], kWarpgroupTurnRow);
}

}  // namespace tenon::ops
