// The product of tensor cores, as CUTLASS draws it for sm_80. A block of warps has a tile of the
// result, each of its warps a rectangle of it in fragments. Step by step of k, tiles of both
// operands are copied to shared memory, up to `stages` - 1 steps ahead, by copies that nobody waits
// for; within a step, fragments are loaded one product ahead, those of the next step too. The sums
// leave through shared memory, so that what follows the product is computed on whole lines of
// memory.
//
//   out[…, i, j]  →  blocks over …, i / tile, j / tile:
//                      for steps (pipelined): a and b of a later step to shared memory
//                        for k of the step (pipelined): fragments of a and b; sums += a · b
//                      sums to shared memory; all threads store them, with what follows
//
// A small result has too few tiles for the machine: then k is cut into parts, a block for each of a
// tile's, and a second launch adds up what they have made.
#include "ops/algorithm/warp_tile.h"

#include <algorithm>

#include "ops/algorithm/group_tile.h"
#include "ops/tiling.h"

namespace tenon::ops {

using te::Indices;

namespace {

constexpr int64_t kWarp = 32, kPieceBytes = 16;

int64_t WarpRows(const Point& point) { return ValueOf(point, "rows"); }
int64_t WarpColumns(const Point& point) { return ValueOf(point, "columns"); }

}  // namespace

int64_t WarpShape::Lead() const {
  int64_t product = 1;
  for (int64_t d : lead) product *= d;
  return product;
}

int64_t WarpTileRows(const Point& point) {
  if (IsGroupTile(point)) return GroupTileRows(point);
  return ValueOf(point, "warps_y") * WarpRows(point);
}
int64_t WarpTileColumns(const Point& point) {
  if (IsGroupTile(point)) return WarpColumns(point);
  return ValueOf(point, "warps_x") * WarpColumns(point);
}
int64_t WarpTileDepth(const WarpShape& shape, const Point& point) {
  const int64_t step = ValueOf(point, "depth") * ValueOf(point, "parts");
  return CeilDiv(shape.k, step) * step;
}

Space WarpTileSpace(const WarpShape& shape, const Machine& machine) {
  const int64_t bytes = shape.type.Bytes(), unit_k = WarpUnit(machine, shape.type)->k;
  Space space;
  const Expr y = space.Add({"warps_y", {1, 2, 4}, false, true});
  const Expr x = space.Add({"warps_x", {1, 2, 4}, false, true});
  const Expr rows = space.Add({"rows", {16, 32, 64}, false, true});
  const Expr columns = space.Add({"columns", {16, 32, 64}, false, true});
  const Expr depth = space.Add({"depth", {2 * unit_k, 4 * unit_k}, false, true});
  const Expr stages = space.Add({"stages", {2, 3, 4}, false, true});
  const Expr parts = space.Add({"parts", {1, 2, 3, 4, 6, 8, 12, 16}, false, true});
  space.Add({"a_vector", {shape.a_vector}, false, true});
  space.Add({"b_vector", {shape.b_vector}, false, true});
  space.Add({"out_vector", {shape.out_vector}, false, true});
  space.Add({"b_along_k", {shape.b_along_k ? 1 : 0}, false, true});
  const Expr warps = y * x;
  space.Require(Le(IndexConst(2), warps));
  space.Require(Le(warps, IndexConst(8)));
  space.Require(Le(rows * columns, IndexConst(64 * 32)));
  space.Require(Le(rows, columns * IndexConst(2)));
  space.Require(Le(columns, rows * IndexConst(2)));
  // The tiles of all stages, and the sums on their way out; rows are padded by 16 bytes.
  const Expr height = y * rows, width = x * columns;
  const Expr pitch = depth + IndexConst(kPieceBytes / bytes);
  space.Require(Le((height + width) * pitch * stages * IndexConst(bytes) +
                       height * (width + IndexConst(8)) * IndexConst(4),
                   IndexConst(std::min<int64_t>(machine.memory[0].capacity_bytes, 96 << 10))));
  // A thread brings whole pieces, and all threads of a block have some in each turn.
  const Expr threads = warps * IndexConst(kWarp);
  space.Require(Eq(height * depth % (threads * IndexConst(shape.a_vector)), IndexConst(0)));
  space.Require(Eq(width * depth % (threads * IndexConst(shape.b_vector)), IndexConst(0)));
  space.Require(Eq(height * width % (threads * IndexConst(shape.out_vector)), IndexConst(0)));
  // Steps behind the end of k are guarded element by element: only where no depth divides it.
  if (shape.k % (2 * unit_k) == 0)
    space.Require(Eq(IndexConst(shape.k) % (depth * parts), IndexConst(0)));
  const Expr steps = (IndexConst(shape.k - 1) + depth) / depth;
  space.Require(Or(Eq(parts, IndexConst(1)), Le(parts * IndexConst(2), steps)));
  return space;
}

int64_t WarpStoreVector(const Site& site, int64_t columns) {
  int64_t v = 128 / site.region.type(site.region.outputs[0]).dtype.StorageBits();
  while (v > 1 && columns % v != 0) v /= 2;
  return std::max<int64_t>(v, 1);
}

double ElementwiseOps(const WorkDescription& work, const WarpShape& shape, const Point& point,
                      int64_t lines) {
  constexpr double kElement = 20;
  const int64_t depth = WarpTileDepth(shape, point) / ValueOf(point, "parts");
  return static_cast<double>(work.tiles * lines) * static_cast<double>(depth) * kElement;
}

// What a block does beside its products, in cycles: its threads meet once a step, and the first
// tiles come from afar.
WorkDescription WarpTileWork(const WarpShape& shape, const Site& site, const Point& point) {
  if (IsGroupTile(point)) return GroupTileWork(shape, site, point);
  constexpr double kStepCycles = 60, kBlockCycles = 1500, kFragmentCycles = 40;
  const Machine& machine = site.machine;
  const ComputeUnit& unit = *WarpUnit(machine, shape.type);
  const int64_t rows = WarpTileRows(point), columns = WarpTileColumns(point);
  const int64_t parts = ValueOf(point, "parts"), depth = ValueOf(point, "depth");
  const int64_t warps = ValueOf(point, "warps_y") * ValueOf(point, "warps_x");
  const int64_t blocks = shape.Lead() * CeilDiv(shape.m, rows) * CeilDiv(shape.n, columns) * parts;
  const auto all = static_cast<double>(blocks);
  const int64_t steps_per_block = WarpTileDepth(shape, point) / depth / parts;
  const auto steps = static_cast<double>(steps_per_block);
  const double together = std::clamp(all / static_cast<double>(machine.workers), 1.0,
                                     16.0 / static_cast<double>(warps));
  const double busy = std::min(1.0, static_cast<double>(warps) * together / 8);
  const double per_cycle =
      static_cast<double>(unit.m * unit.n * unit.k) * unit.per_second / machine.cycles_per_second;
  // Products wait for their fragments where a warp has few of them.
  const double loads = static_cast<double>(WarpRows(point) + WarpColumns(point)) /
                       static_cast<double>(WarpRows(point) * WarpColumns(point));
  const double products = static_cast<double>(rows * columns * depth) / per_cycle;
  const int64_t fragments = depth / unit.k;
  const double step = products / busy * (1 + loads * 4) +
                      (kStepCycles + kFragmentCycles * static_cast<double>(fragments)) / together /
                          static_cast<double>(ValueOf(point, "stages") - 1);
  return BlocksWork(shape, site, point, steps * step + kBlockCycles / together, 1);
}

WorkDescription BlocksWork(const WarpShape& shape, const Site& site, const Point& point,
                           double block_cycles, int64_t barriers) {
  const Machine& machine = site.machine;
  const int64_t rows = WarpTileRows(point), columns = WarpTileColumns(point);
  const int64_t parts = ValueOf(point, "parts"), depth = ValueOf(point, "depth");
  const int64_t blocks = shape.Lead() * CeilDiv(shape.m, rows) * CeilDiv(shape.n, columns) * parts;
  const auto all = static_cast<double>(blocks);
  const int64_t steps_per_block = WarpTileDepth(shape, point) / depth / parts;
  const auto steps = static_cast<double>(steps_per_block);
  const auto lanes = static_cast<double>(machine.VectorUnit(DType::Float(32)).n);
  WorkDescription work;
  work.team = machine.workers;
  work.tiles = blocks;
  work.vector_ops = all * block_cycles * lanes + EpilogueElements(site);
  const double bytes = shape.type.Bytes();
  work.bytes[1] = all * steps * static_cast<double>(depth * (rows + columns)) * bytes;
  work.bytes[2] = BorderBytes(site.region);
  if (parts > 1) {
    work.bytes[1] += 2.0 * all * static_cast<double>(rows * columns) * 4;
    work.barriers = barriers;
  }
  return work;
}

Expr Around(const Expr& i, int64_t size, int64_t tile, int64_t piece) {
  if (size % tile == 0) return i;
  if (piece == 1) return i % size;
  return i / piece % (size / piece) * piece + i % piece;
}

std::function<Expr(const Indices&)> BuildWarpTiles(Group& group, const std::string& name,
                                                   const WarpShape& shape,
                                                   const WarpOperands& operands,
                                                   const Point& point) {
  const DType f32 = DType::Float(32);
  const size_t rank = shape.lead.size();
  const int64_t parts = ValueOf(point, "parts"), all_k = WarpTileDepth(shape, point);
  const Expr depth = IndexConst(all_k);
  const Expr rows = IndexConst(CeilDiv(shape.m, WarpTileRows(point)) * WarpTileRows(point));
  const Expr columns =
      IndexConst(CeilDiv(shape.n, WarpTileColumns(point)) * WarpTileColumns(point));
  Indices lead;
  for (int64_t d : shape.lead) lead.push_back(IndexConst(d));
  const auto tile = [&](const char* suffix, bool has_lead, bool along_k, const Expr& count,
                        const WarpElement& element) {
    const Indices dims = along_k ? Indices{count, depth} : Indices{depth, count};
    return te::Compute(group.Mark(name + suffix, BlockRole::kMove),
                       Behind(has_lead ? lead : Indices{}, dims), [&](const Indices& i) {
                         const size_t r = i.size();
                         const Indices around(i.begin(), i.end() - 2);
                         return along_k ? element(around, i[r - 2], i[r - 1])
                                        : element(around, i[r - 1], i[r - 2]);
                       });
  };
  const te::Tensor a = tile("_a", operands.a_has_lead, true, rows, operands.a);
  te::Tensor b = tile("_b", operands.b_has_lead, shape.b_along_k, columns, operands.b);
  // A warpgroup reads a factor either way.
  const bool groups = IsGroupTile(point), as_it_lies = groups && shape.b_along_k;
  if (shape.b_along_k && !groups) {
    b = te::Compute(group.Mark(name + "_turned", BlockRole::kPack),
                    Behind(operands.b_has_lead ? lead : Indices{}, {depth, columns}),
                    [b](const Indices& i) {
                      Indices at = i;
                      std::swap(at[at.size() - 2], at[at.size() - 1]);
                      return b.At(at);
                    });
  }
  const size_t first = parts > 1 ? 1 : 0;
  Indices dims = Behind(lead, {rows, columns});
  if (parts > 1) dims.insert(dims.begin(), IndexConst(parts));
  group.Mark(name, BlockRole::kAnchor);
  const auto wide = [&](const Expr& e) { return e->dtype == f32 ? e : CastExpr::Make(f32, e); };
  const te::Tensor sums = te::Compute(name, dims, [&](const Indices& i) {
    te::Axis k = te::ReduceAxis("k", IndexConst(all_k / parts));
    const auto from = i.begin() + static_cast<long>(first);
    const Indices around(from, from + static_cast<long>(rank));
    const Expr at = parts > 1 ? i[0] * (all_k / parts) + k.var : Expr(k.var);
    const Expr &row = i[first + rank], &column = i[first + rank + 1];
    return te::Sum(wide(a.At(Behind(operands.a_has_lead ? around : Indices{}, {row, at}))) *
                       wide(b.At(Behind(operands.b_has_lead ? around : Indices{},
                                        as_it_lies ? Indices{column, at} : Indices{at, column}))),
                   {k});
  });
  const te::Tensor made = te::Compute(group.Mark(name + "_made", BlockRole::kMove), dims,
                                      [&](const Indices& i) { return sums.At(i); });
  if (parts == 1) return [made](const Indices& i) { return made.At(i); };
  const te::Tensor total = te::Compute(group.Mark(name + "_total", BlockRole::kAcross),
                                       Behind(lead, {rows, columns}), [&](const Indices& i) {
                                         te::Axis p = te::ReduceAxis("p", IndexConst(parts));
                                         return te::Sum(made.At(Behind({p.var}, i)), {p});
                                       });
  return [total](const Indices& i) { return total.At(i); };
}

std::string BindTiles(Schedule& s, const Names& lead, const std::string& rows,
                      const std::string& columns, const Point& point, Names* inner) {
  const Names y = s.Split(rows, {-1, WarpTileRows(point)});
  const Names x = s.Split(columns, {-1, WarpTileColumns(point)});
  s.Reorder(Concat({lead, {y[0], x[0], y[1], x[1]}}));
  if (!lead.empty()) s.Bind(lead.size() > 1 ? s.Fuse(lead) : lead[0], ThreadAxis::kBlockIdxZ);
  s.Bind(y[0], ThreadAxis::kBlockIdxY);
  s.Bind(x[0], ThreadAxis::kBlockIdxX);
  *inner = {y[1], x[1]};
  return x[0];
}

namespace {

// The sums in fragments of the warp that has `at`, and the operands' tiles that they are made of.
struct WarpBlocks {
  std::string sums, a, b;
  std::string turned;  // reads b by columns; "": b lies by rows of k
};
void ScheduleProducts(Schedule& s, const WarpSteps& steps, const WarpBlocks& blocks,
                      const std::string& at, const Point& point) {
  const auto& [sums, a, b, turned] = blocks;
  const ComputeUnit& unit = steps.unit();
  s.SetScope(WrittenBuffer(s, sums), Scope::kFragment);
  s.ComputeAt(sums, at);
  const InnerLoops in = LoopsInside(s, sums, at);
  if (!s.ok()) return;
  const size_t r = in.spatial.size();
  const Names i = s.Split(in.spatial[r - 2], {-1, unit.m});
  const Names j = s.Split(in.spatial[r - 1], {-1, unit.n});
  const int64_t products = ValueOf(point, "depth") / unit.k;
  const Names k = s.Split(in.reduce[0], {-1, products, unit.k});
  s.Reorder({k[0], k[1], i[0], j[0], i[1], j[1], k[2]});
  const bool along_k = !turned.empty();
  const std::string left = steps.Fragments(sums, a);
  const std::string right = steps.Fragments(sums, b, turned);
  s.ComputeAt(right, k[1]);
  s.ComputeAt(left, k[1]);
  s.DecomposeReduction(sums, k[0]);
  // Loads, and the product of the step before: the first loads become a statement of the loop over
  // tiles.
  const std::string inner = s.SoftwarePipeline(k[1], {0, 0, 1}, {0, 1, 2});
  s.Partition(inner, {1, products});
  s.ComputeAt(b, k[0]);
  s.ComputeAt(a, k[0]);
  const int64_t stages = ValueOf(point, "stages");
  s.SoftwarePipeline(k[0], {0, 0, stages - 2, stages - 1, stages - 1}, {0, 1, 3, 2, 4});
  steps.PadRows(a);
  steps.PadRows(b);
  steps.BringTile(a, ValueOf(point, "a_vector"));
  steps.BringTile(b, ValueOf(point, "b_vector"));
  for (const char* part : {".p0", ".p1"}) {
    steps.LoadLeft(left + part);
    steps.LoadRight(right + part, along_k);
  }
  for (const char* part : {".p1", ".p2"}) steps.Multiply(sums + part);
}

// Elements of rows by neighbouring threads, of which a row of a block is a warp here too; the loop
// over these.
std::string ShareElements(Schedule& s, const std::string& store, size_t columns) {
  constexpr int64_t kThreads = 32, kRows = 4;
  const Names axes = s.GetLoops(store);
  if (!s.ok()) return "";
  const auto fused = [&](Names loops) { return loops.size() > 1 ? s.Fuse(loops) : loops[0]; };
  const auto first = axes.end() - static_cast<long>(columns);
  const std::string along = fused({first, axes.end()}), above = fused({axes.begin(), first});
  const Names y = s.Split(above, {-1, kRows});
  const Names x = s.Split(along, {-1, kThreads});
  s.Reorder({y[0], x[0], y[1], x[1]});
  s.Bind(y[0], ThreadAxis::kBlockIdxY);
  s.Bind(x[0], ThreadAxis::kBlockIdxX);
  s.Bind(y[1], ThreadAxis::kThreadIdxY);
  s.Bind(x[1], ThreadAxis::kThreadIdxX);
  return x[1];
}

}  // namespace

void ScheduleTotal(Schedule& s, const Parts& parts, size_t columns) {
  const std::string thread = ShareElements(s, OnlyBlock(s, parts, BlockRole::kOutput), columns);
  const std::string total = OnlyBlock(s, parts, BlockRole::kAcross);
  s.SetScope(WrittenBuffer(s, total), Scope::kLocal);
  s.ComputeAt(total, thread);
  const Names made = LoopsInside(s, total, thread).reduce;
  if (!s.ok()) return;
  s.DecomposeReduction(total, made[0]);
  s.Unroll(made[0]);
}

void ScheduleWarpTiles(Schedule& s, const Parts& parts, const Machine& machine, const Point& point,
                       const WarpOrder& order) {
  if (IsGroupTile(point)) return ScheduleGroupTiles(s, parts, machine, point, order);
  const Names moves = BlocksOf(s, parts, BlockRole::kMove);  // a, b, and what becomes of the sums
  const std::string sums = OnlyBlock(s, parts, BlockRole::kAnchor);
  const std::string store = OnlyBlock(s, parts, BlockRole::kOutput);
  if (!s.ok() || moves.size() != 3) return;
  const WarpSteps steps(s, *WarpUnit(machine, WrittenType(s, moves[0])), ValueOf(point, "warps_y"),
                        ValueOf(point, "warps_x"));
  const WarpBlocks blocks = {sums, moves[0], moves[1], OnlyBlock(s, parts, BlockRole::kPack)};
  if (ValueOf(point, "parts") > 1) {
    ScheduleTotal(s, parts, order.columns);
    const Names axes = s.GetLoops(moves[2]);
    if (!s.ok()) return;
    Names inner;
    BindTiles(s, {axes.begin(), axes.end() - 2}, axes[axes.size() - 2], axes.back(), point, &inner);
    if (!s.ok()) return;
    const std::string warp = steps.BindWarps(inner[0], inner[1]);
    return ScheduleProducts(s, steps, blocks, warp, point);
  }
  const Names axes = s.GetLoops(store);
  if (!s.ok()) return;
  const auto fused = [&](Names loops) { return loops.size() > 1 ? s.Fuse(loops) : loops[0]; };
  const auto columns = axes.end() - static_cast<long>(order.columns);
  const auto rows = columns - static_cast<long>(order.rows);
  const std::string j = fused({columns, axes.end()}), i = fused({rows, columns});
  Names inner;
  const std::string block = BindTiles(s, {axes.begin(), rows}, i, j, point, &inner);
  const std::string part = steps.ShareOut(inner[0], inner[1], ValueOf(point, "out_vector"));
  if (!part.empty()) s.Vectorize(part);
  const std::string staged = WrittenBuffer(s, moves[2]);
  s.SetScope(staged, Scope::kShared);
  s.ComputeAt(moves[2], block);
  const Names tile = LoopsInside(s, moves[2], block).spatial;
  if (!s.ok()) return;
  s.StorageAlign(staged, WrittenRank(s, moves[2]) - 2, 32, 8);
  const std::string warp = steps.BindWarps(tile[tile.size() - 2], tile.back());
  ScheduleProducts(s, steps, blocks, warp, point);
}

}  // namespace tenon::ops
