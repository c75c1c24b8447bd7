// The textbook's product for GPUs. A block of threads has a tile of the result, each of its threads
// the sums of a few pieces of 4 × 4 in registers. Step by step of k the threads bring a tile of
// each operand into shared memory, the next one while this one is multiplied; pieces of one thread
// stand apart (virtual threads), so that neighbours read neighbouring vectors.
//
//   out[…, i, j]  →  blocks over …, i / tile, j / tile: threads y, x:
//                      for steps: a and b of the step to shared memory
//                        for k: sums[pieces, 4, 4] += a[k, pieces, 4] · b[k, pieces, 4]
//                      store the sums, with what follows the product
//
// A small result has too few tiles for the machine: then the steps are cut into parts, a block for
// each of a tile's, and a second launch adds up what they have made.
//
// Everything is computed in whole tiles, with zeros behind the operands' ends, so that only what is
// stored at the end is guarded.
#include "ops/algorithm/thread_tile.h"

#include <algorithm>

#include "graph/infer.h"
#include "ops/scheduling.h"
#include "ops/tiling.h"

namespace tenon::ops {

using te::Indices;

namespace {

constexpr int64_t kPiece = 4, kUnrolled = 8;

int64_t StepsOf(const TileShape& shape, const Point& point) {
  return CeilDiv(std::max<int64_t>(shape.k, 1), ValueOf(point, "depth"));
}

}  // namespace

bool IsTiled(DType type) {
  return type.IsFloat() && graph::AccumulatorOf(type) == DType::Float(32);
}

int64_t TileRows(const Point& point, const std::string& pieces) {
  return ValueOf(point, "threads_y") * ValueOf(point, pieces + "_y") * kPiece;
}
int64_t TileColumns(const Point& point, const std::string& pieces) {
  return ValueOf(point, "threads_x") * ValueOf(point, pieces + "_x") * kPiece;
}

int64_t TileShape::Lead() const {
  int64_t product = 1;
  for (int64_t d : lead) product *= d;
  return product;
}

Space TileSpace(const TileShape& shape, const Machine& machine, bool may_cut,
                const std::string& second) {
  Space space;
  const Expr y = space.Add({"threads_y", {4, 8, 16}, false, true});
  const Expr x = space.Add({"threads_x", {8, 16}, false, true});
  const Expr rows = space.Add({shape.pieces + "_y", {1, 2}, false, true});
  const Expr columns = space.Add({shape.pieces + "_x", {1, 2}, false, true});
  const Expr depth = space.Add({"depth", {8, 16, 32}, false, true});
  std::vector<int64_t> counts = {1};
  if (may_cut) counts = {1, 2, 3, 4, 6, 8, 9, 12, 16, 18};
  const Expr parts = space.Add({"parts", counts, false, true});
  space.Add({"a_vector", {shape.a_vector}, false, true});
  space.Add({"b_vector", {shape.b_vector}, false, true});
  space.Add({"out_vector", {shape.out_vector}, false, true});
  // Two tiles of each operand are there at once.
  const auto require = [&](const Expr& of_y, const Expr& of_x) {
    const Expr tiles = depth * (y * of_y + x * of_x) * IndexConst(2 * kPiece * 4);
    space.Require(
        Le(tiles, IndexConst(std::min<int64_t>(machine.memory[0].capacity_bytes, 48 << 10))));
  };
  require(rows, columns);
  if (!second.empty()) {
    const Expr more_rows = space.Add({second + "_y", {1, 2}, false, true});
    const Expr more_columns = space.Add({second + "_x", {1, 2}, false, true});
    require(more_rows, more_columns);
  }
  space.Require(Le(x * y, IndexConst(machine.target->gpu().max_threads_per_block)));
  const Expr steps = (IndexConst(std::max<int64_t>(shape.k, 1) - 1) + depth) / depth;
  space.Require(Eq(steps % parts, IndexConst(0)));
  space.Require(Or(Eq(parts, IndexConst(1)), Le(parts * 2, steps)));
  // What stores a single row or column itself has no tiles; what parts have made is whole tiles.
  if (shape.m == 1 || shape.n == 1) space.Require(Lt(IndexConst(1), parts));
  return space;
}

// How many such blocks a multiprocessor has room for: two tiles of each operand in its shared
// memory, and what a thread holds in its registers: its sums, pieces that it multiplies, and what
// it has asked for of the next step. What comes element by element has an address of its own each.
static double BlocksTogether(const TileShape& shape, const Point& point, const Machine& machine) {
  constexpr int64_t kOther = 40, kRegisters = 64 << 10, kReserved = 1 << 10;
  constexpr int64_t kMostThreads = 2048, kMost = 24;
  const int64_t rows = TileRows(point, shape.pieces), columns = TileColumns(point, shape.pieces);
  const int64_t threads = ValueOf(point, "threads_y") * ValueOf(point, "threads_x");
  const int64_t depth = ValueOf(point, "depth");
  const auto held = [&](int64_t lines, int64_t vector) {
    return static_cast<double>(lines * depth) / static_cast<double>(threads) *
           (vector > 1 ? 0.5 : 3.0);
  };
  const int64_t sums = rows * columns / threads;
  const int64_t pieces =
      (rows * ValueOf(point, "threads_x") + columns * ValueOf(point, "threads_y")) / threads;
  const double registers =
      std::min<double>(static_cast<double>(sums + pieces + kOther) + held(rows, shape.a_vector) +
                           held(columns, shape.b_vector),
                       static_cast<double>(machine.registers));
  const int64_t shared = 2 * depth * (rows + columns) * 4 + kReserved;
  const auto fit = static_cast<int64_t>(kRegisters / (registers * static_cast<double>(threads)));
  return static_cast<double>(std::clamp<int64_t>(
      std::min({fit, machine.memory[0].capacity_bytes / shared, kMostThreads / threads}), 1,
      kMost));
}

// What a block does beside its products, in cycles: the threads meet twice in a step, bring a tile
// of each operand, and what the first step reads comes from afar. What is constant was measured on
// an H200: a least-squares fit over the points of 51 products and convolutions.
WorkDescription TileWork(const TileShape& shape, const Site& site, const Point& point) {
  constexpr double kStepCycles = 760, kBlockCycles = 1060, kElement = 5, kWarp = 32;
  constexpr double kBusyWarps = 12;
  constexpr int64_t kBarriersOfLaunch = 5;
  const int64_t rows = TileRows(point, shape.pieces);
  const int64_t columns = TileColumns(point, shape.pieces);
  const int64_t parts = ValueOf(point, "parts"), depth = ValueOf(point, "depth");
  const Machine& machine = site.machine;
  const int64_t blocks = shape.Lead() * CeilDiv(shape.m, rows) * CeilDiv(shape.n, columns) * parts;
  const double steps = static_cast<double>(StepsOf(shape, point)) / static_cast<double>(parts);
  const double warps =
      static_cast<double>(ValueOf(point, "threads_y") * ValueOf(point, "threads_x")) / kWarp;
  // Blocks that a multiprocessor has at once hide each other's waits.
  const auto own = static_cast<double>(CeilDiv(blocks, machine.workers));
  const double together = std::min(own, BlocksTogether(shape, point, machine));
  const double idle = std::max(1.0, kBusyWarps / (warps * together));
  const auto lanes = static_cast<double>(machine.VectorUnit(DType::Float(32)).n);
  const auto all = static_cast<double>(blocks);
  const double products = static_cast<double>(rows * columns * depth) * steps;
  const double elements = static_cast<double>((rows + columns) * depth) * steps;
  WorkDescription work;
  work.team = machine.workers;
  work.tiles = blocks;
  work.vector_ops = all * (products * idle + elements * kElement +
                           (steps * kStepCycles + kBlockCycles) * lanes / together) +
                    EpilogueElements(site);
  // Of four rows that a warp's threads have, and of its columns.
  const auto reads = static_cast<double>(ValueOf(point, shape.pieces + "_y") +
                                         2 * ValueOf(point, shape.pieces + "_x"));
  work.bytes[0] = all * steps * static_cast<double>(depth) * warps * reads * 128;
  work.bytes[1] = all * steps * static_cast<double>(depth * (rows + columns)) * 4;
  work.bytes[2] = BorderBytes(site.region);
  if (parts > 1) {
    // What parts have made is written and read again; where the nearer caches do not hold it, that
    // is a time by itself.
    const auto made = all * static_cast<double>(rows * columns) * 4;
    if (machine.LevelFor(static_cast<int64_t>(made)) + 1 < machine.memory.size())
      work.bytes[1] += 2 * made;
    else
      work.packed_bytes = made;
    work.barriers = kBarriersOfLaunch;
  }
  return work;
}

std::function<Expr(const Indices&)> BuildTiles(Group& group, const std::string& name,
                                               const TileShape& shape, const TileOperands& operands,
                                               const Point& point) {
  const size_t rank = shape.lead.size();
  const int64_t parts = ValueOf(point, "parts");
  const Expr depth = IndexConst(ValueOf(point, "depth")), steps = IndexConst(StepsOf(shape, point));
  const int64_t tile_rows = TileRows(point, shape.pieces);
  const int64_t tile_columns = TileColumns(point, shape.pieces);
  const Expr rows = IndexConst(CeilDiv(shape.m, tile_rows) * tile_rows);
  const Expr columns = IndexConst(CeilDiv(shape.n, tile_columns) * tile_columns);
  Indices lead;
  for (int64_t d : shape.lead) lead.push_back(IndexConst(d));
  auto lead_of = [rank](const Indices& i, size_t first) {
    const auto from = i.begin() + static_cast<long>(first);
    return Indices(from, from + static_cast<long>(rank));
  };
  auto tile = [&](const char* suffix, const Indices& around, const Expr& along,
                  const TileElement& element) {
    return te::Compute(group.Mark(name + suffix, BlockRole::kMove),
                       Behind(around, {steps, depth, along}), [&](const Indices& i) {
                         const size_t r = i.size();
                         const Expr value =
                             element(Indices(i.begin(), i.end() - 3), i[r - 1], i[r - 3], i[r - 2]);
                         const DType wide = operands.accumulator;
                         return value->dtype == wide ? value : CastExpr::Make(wide, value);
                       });
  };
  const te::Tensor a = tile("_a", operands.a_has_lead ? lead : Indices{}, rows, operands.a);
  const te::Tensor b = tile("_b", operands.b_has_lead ? lead : Indices{}, columns, operands.b);
  const bool cut = parts > 1;
  Indices dims = Behind(lead, {rows, columns});
  if (cut) dims.insert(dims.begin(), IndexConst(parts));
  group.Mark(name, BlockRole::kAnchor);
  const size_t first = cut ? 1 : 0;
  const int64_t own = StepsOf(shape, point) / parts;
  const te::Tensor sums = te::Compute(name, dims, [&](const Indices& i) {
    te::Axis q = te::ReduceAxis("q", IndexConst(own)), k = te::ReduceAxis("k", depth);
    const Indices around = lead_of(i, first);
    const Expr step = cut ? i[0] * own + q.var : Expr(q.var);
    const Expr &row = i[first + rank], &column = i[first + rank + 1];
    const Indices of_a = operands.a_has_lead ? around : Indices{};
    const Indices of_b = operands.b_has_lead ? around : Indices{};
    return te::Sum(
        a.At(Behind(of_a, {step, k.var, row})) * b.At(Behind(of_b, {step, k.var, column})), {q, k});
  });
  if (!cut) return [sums](const Indices& i) { return sums.At(i); };
  const te::Tensor made = te::Compute(group.Mark(name + "_parts", BlockRole::kMove), dims,
                                      [&](const Indices& i) { return sums.At(i); });
  const te::Tensor total = te::Compute(group.Mark(name + "_total", BlockRole::kAcross),
                                       Behind(lead, {rows, columns}), [&](const Indices& i) {
                                         te::Axis p = te::ReduceAxis("p", IndexConst(parts));
                                         return te::Sum(made.At(Behind({p.var}, i)), {p});
                                       });
  return [total](const Indices& i) { return total.At(i); };
}

namespace {

// The tile of an operand, in shared memory at each step: its elements over the block's threads,
// neighbours in memory over neighbouring ones.
void ScheduleLoad(Schedule& s, const std::string& block, const std::string& step, bool along_k,
                  int64_t vector, const Point& point) {
  s.SetScope(WrittenBuffer(s, block), Scope::kShared);
  s.ComputeAt(block, step);
  Names loops = LoopsInside(s, block, step).spatial;
  if (!s.ok()) return;
  std::string k = loops[loops.size() - 2], along = loops.back(), lanes;
  std::string& inner = along_k ? k : along;
  if (vector > 1) {
    const Names parts = s.Split(inner, {-1, vector});
    inner = parts[0];
    lanes = parts[1];
  }
  // Threads next to each other write to neighbouring banks of shared memory, also where each has a
  // piece of a row of its own.
  s.Reorder(Concat({{k, along, lanes}}));
  const std::string all = s.Fuse({k, along});
  const Names parts = s.Split(all, {-1, ValueOf(point, "threads_y"), ValueOf(point, "threads_x")});
  s.Unroll(parts[0]);
  s.Bind(parts[1], ThreadAxis::kThreadIdxY);
  s.Bind(parts[2], ThreadAxis::kThreadIdxX);
  if (vector > 1) s.Vectorize(lanes);
}

void BindBlocks(Schedule& s, const Names& around, const std::string& y, const std::string& x) {
  if (!around.empty()) {
    s.Bind(around.size() > 1 ? s.Fuse(around) : around[0], ThreadAxis::kBlockIdxZ);
  }
  s.Bind(y, ThreadAxis::kBlockIdxY);
  s.Bind(x, ThreadAxis::kBlockIdxX);
}

}  // namespace

void ScheduleTile(Schedule& s, const TileBlocks& blocks, const Point& point,
                  const TileOrder& order) {
  Names axes = s.GetLoops(blocks.store);
  if (!s.ok()) return;
  const auto end = axes.end() - static_cast<long>(order.columns);
  const Names last(end, axes.end());
  const auto rows = end - static_cast<long>(order.rows);
  const Names above(rows, end), lead(axes.begin(), rows);
  const std::string j = order.columns > 1 ? s.Fuse(last) : last[0];
  const std::string i = order.rows > 1 ? s.Fuse(above) : above[0];
  const std::string piece = std::to_string(kPiece);
  const Names y = s.SplitBy(i, {"-1", "$" + order.pieces + "_y", "$threads_y", piece});
  const Names x = s.SplitBy(j, {"-1", "$" + order.pieces + "_x", "$threads_x", piece});
  s.Reorder(Concat({lead, {y[0], x[0], y[1], x[1], y[2], x[2], y[3], x[3]}}));
  BindBlocks(s, lead, y[0], x[0]);
  s.Bind(y[1], ThreadAxis::kVThread);
  s.Bind(x[1], ThreadAxis::kVThread);
  s.Bind(y[2], ThreadAxis::kThreadIdxY);
  s.Bind(x[2], ThreadAxis::kThreadIdxX);
  s.Unroll(y[3]);
  if (ValueOf(point, "out_vector") > 1) {
    s.Vectorize(x[3]);
  } else {
    s.Unroll(x[3]);
  }

  s.SetScope(WrittenBuffer(s, blocks.sums), Scope::kLocal);
  s.ComputeAt(blocks.sums, x[2]);
  const InnerLoops in = LoopsInside(s, blocks.sums, x[2]);
  if (!s.ok()) return;
  const bool steps = in.reduce.size() > 1;
  const std::string step = steps ? in.reduce[0] : x[2];
  // Code for a few k is enough to keep the units busy, and is what compiling takes time for.
  const Names k = s.Split(in.reduce.back(), {-1, kUnrolled});
  s.Reorder(Concat({steps ? Names{step} : Names{}, k, in.spatial}));
  const std::string start = s.DecomposeReduction(blocks.sums, steps ? step : k[0]);
  for (const std::string& loop : LoopsInside(s, start, x[2]).spatial) s.Unroll(loop);
  for (const std::string& loop : in.spatial) s.Unroll(loop);
  s.Unroll(k[1]);
  const std::string a = WrittenBuffer(s, blocks.a), b = WrittenBuffer(s, blocks.b);
  ScheduleLoad(s, blocks.a, step, order.a_along_k, ValueOf(point, "a_vector"), point);
  ScheduleLoad(s, blocks.b, step, order.b_along_k, ValueOf(point, "b_vector"), point);
  for (const std::string& operand : {a, b}) {
    const std::string read = s.CacheRead(blocks.sums, operand, Scope::kLocal);
    s.ComputeAt(read, k[1]);
    const Names loops = LoopsInside(s, read, k[1]).spatial;
    if (!s.ok()) return;
    s.Vectorize(loops.back());
  }
  if (steps) s.SoftwarePipeline(step, {0, 0, 1}, {1, 2, 0});
}

void ScheduleTiles(Schedule& s, const Parts& parts, const Point& point, const TileOrder& order) {
  const Names moves = BlocksOf(s, parts, BlockRole::kMove);  // a, b, and what parts have made
  const std::string sums = OnlyBlock(s, parts, BlockRole::kAnchor);
  const std::string out = OnlyBlock(s, parts, BlockRole::kOutput);
  if (moves.size() == 2) {
    ScheduleTile(s, {moves[0], moves[1], sums, out}, point, order);
    return;
  }
  const std::string thread = ShareAmongThreads(s, parts, out);
  const std::string total = OnlyBlock(s, parts, BlockRole::kAcross);
  s.SetScope(WrittenBuffer(s, total), Scope::kLocal);
  s.ComputeAt(total, thread);
  // Written out, so that a thread asks for all parts at once.
  const Names made = LoopsInside(s, total, thread).reduce;
  if (!s.ok()) return;
  s.DecomposeReduction(total, made[0]);
  s.Unroll(made[0]);
  TileOrder whole = order;
  whole.rows = whole.columns = 1;
  ScheduleTile(s, {moves[0], moves[1], sums, moves[2]}, point, whole);
}

}  // namespace tenon::ops
