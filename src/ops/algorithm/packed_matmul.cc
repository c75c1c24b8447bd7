// Matrix product with a packed second operand (Goto's scheme as in BLIS): panels of nv vectors of
// columns, contiguous along k, made ahead from constant weights; rows of the first operand are read
// in place by broadcast. A block of rows that the second-level cache holds meets each panel in
// turn, so panels, which lie in one piece, are all that is streamed. What multiplies is a
// micro-kernel of vectors: multiply-adds of one element of k, or dot products of a few neighbours,
// for which both operands are padded along k to whole steps.
//
//   out[…, i, j]  →  for …, i / (row_block · tile_rows), j / (nv · lanes), row_block:
//                      for k / depth: tile[tile_rows, nv, lanes] += a[i, k] · panel[k]
//                      store the tile, with what follows the product
#include <algorithm>

#include "ops/algorithm/tile_schedule.h"
#include "ops/conv_geometry.h"
#include "ops/group.h"
#include "ops/micro_kernel.h"
#include "ops/tiling.h"

namespace tenon::ops {

using graph::OpKind;
using te::Indices;

namespace {

std::optional<MicroKernel> FindKernel(const Site& site, const ProductShape& s) {
  return VectorKernelFor(site.machine, s.a, s.b, s.types.accumulator);
}

// A tile reads one element of each of its rows at a time. Where rows are a multiple of 4 KB long,
// these lie in one set of the first-level cache, which has 8 ways or a few more: a tile of more
// rows keeps missing it. (14 rows of 1024 columns run at 0.6 of the speed of 6.)
constexpr int64_t kMaxRows = 8;
constexpr int64_t kMaxRowBlock = 64;  // tiles of rows that may meet a panel one after another

bool IsFor(const Site& site) {
  const auto s = ReadProductOfRows(site);
  return s && FindKernel(site, *s);
}

// A ragged last vector is stored by mask, so any number of columns has its panels; narrow results
// get the vectors they need.
int64_t Vectors(const ProductShape& s, const MicroKernel& kernel) {
  const int64_t vectors = CeilDiv(s.n, kernel.lanes());
  return vectors > 4 ? CeilDiv(vectors, 4) * 4 : vectors;
}

Space SpaceOf(const Site& site) {
  const ProductShape s = *ReadProductOfRows(site);
  const MicroKernel kernel = *FindKernel(site, s);
  Space space;
  const Expr nv = space.Add({"nv", DivisorsOf(Vectors(s, kernel), 8), true, true});
  const Expr rows = space.Add({"tile_rows", OneTo(std::min(s.m, kMaxRows)), false, false});
  space.Require(FitsRegisters(rows, nv, site.machine));
  const bool is_open = !AreNumbers(site.result());
  if (is_open) {
    // Where sizes decide how many rows a tile has, few ones must not wait for their panel: the
    // nearest level holds it besides their own, or it is as narrow as keeps the units busy.
    const int64_t vector_bytes = std::max<int64_t>(s.k, 1) * s.b.Bytes() * kernel.lanes();
    const Expr held = Le(nv * IndexConst(vector_bytes),
                         IndexConst(site.machine.memory[0].capacity_bytes * 3 / 4));
    space.Require(Or(held, Le(nv, IndexConst(2))));
  }
  // Half of the second-level cache holds a block's rows.
  const Expr block = space.Add({"row_block", OneTo(kMaxRowBlock), false, false});
  const int64_t row_bytes = std::max<int64_t>(s.k, 1) * s.a.Bytes();
  const Expr one = Eq(block, IndexConst(1));
  space.Require(
      Or(one, Le(block * rows * row_bytes, IndexConst(SecondLevelBytes(site.machine) / 2))));
  const Expr block_rows = block * rows;
  auto blocks_of = [&](int64_t m) {
    return (IndexConst(std::max<int64_t>(m, 1) - 1) + block_rows) / block_rows;
  };
  const int64_t last = std::max<int64_t>(s.m, 1) - 1;
  const Expr blocks = blocks_of(s.m);
  // Blocks of near-equal size: no larger than as many of them need.
  const Expr tiles = (IndexConst(last) + rows) / rows;
  space.Require(Le(block, (tiles - 1) / blocks + 1));
  std::vector<TripCount> outer = TripCounts(s.lead, s.least);
  const Expr panel = nv * IndexConst(kernel.lanes());
  outer.emplace_back(blocks, blocks_of(s.least.back()));
  outer.emplace_back((IndexConst(s.n - 1) + panel) / panel);
  outer.emplace_back(block, Min(block, (IndexConst(s.least.back() - 1) + rows) / rows));
  AddParallelLoops(&space, outer, is_open);
  return space;
}

std::vector<Want> Wants(const Site& site, const Point& point) {
  const ProductShape s = *ReadProductOfRows(site);
  const MicroKernel kernel = *FindKernel(site, s);
  std::vector<Want> wants = {
      {site.node().inputs[1], kernel.Panels(s.trans_b, ValueOf(point, "nv"))}};
  const StorageDesc rows = kernel.Rows(site.input(0).dims, 1);
  if (!rows.IsPlain() || !kernel.IsPlain()) wants.push_back({site.node().inputs[0], rows});
  WantPlainResults(site, &wants);
  return wants;
}

struct Tiles {
  int64_t panels, columns;  // of the second operand; columns of each
  int64_t count, rows;      // of the first
  int64_t blocks;           // of rows
};

// A tile streams its panel and its rows from the nearest level that holds them beside what is
// wanted again: the block of rows. The first tile of that brings the panel in, which
// AddProductBytes counts.
void AddTileTraffic(WorkDescription* work, const ProductShape& s, const Machine& machine,
                    const Tiles& t) {
  const int64_t k = std::max<int64_t>(s.k, 1);
  const int64_t panel = k * t.columns * s.b.Bytes(), rows = k * t.rows * s.a.Bytes();
  const int64_t block = CeilDiv(t.count, std::max<int64_t>(t.blocks, 1)) * rows;
  // Three quarters of a level.
  const size_t beside =
      std::clamp<size_t>(machine.LevelFor((panel + block) * 2 / 3), 1, machine.memory.size() - 1);
  const auto stream = [&](int64_t bytes, int64_t times) {
    if (machine.LevelFor(bytes) == 0) return;
    work->bytes[beside] += static_cast<double>(bytes) * static_cast<double>(times);
  };
  stream(panel, s.Lead() * t.panels * (t.count - t.blocks));
  stream(rows, s.Lead() * t.panels * t.count);
}

WorkDescription Work(const Site& site, const Point& point) {
  const ProductShape s = *ReadProductOfRows(site);
  const MicroKernel kernel = *FindKernel(site, s);
  const int64_t nv = ValueOf(point, "nv"), rows = ValueOf(point, "tile_rows");
  const int64_t block = ValueOf(point, "row_block");
  const int64_t blocks = CeilDiv(s.m, block * rows);
  const int64_t panels = Vectors(s, kernel) / nv;
  WorkDescription work;
  work.type = s.types.accumulator;
  work.unit = kernel.unit;
  AddTiles(&work, 1, s.m, 1, rows, nv,
           static_cast<double>(s.Lead() * panels * CeilDiv(s.k, kernel.depth())));
  work.vector_ops = EpilogueElements(site);
  AddProductBytes(&work, site, s.Lead() * blocks);
  AddTileTraffic(&work, s, site.machine,
                 {panels, nv * kernel.lanes(), CeilDiv(s.m, rows), rows, blocks});
  std::vector<int64_t> outer = s.lead;
  outer.insert(outer.end(), {blocks, CeilDiv(s.n, nv * kernel.lanes()), block});
  ShareOut(&work, site.machine, outer, point);
  return work;
}

// A dot product knows no masks: columns that fill the last panel are computed, and not stored.
Operand Build(Group& group, const graph::Node& node, const Point& point) {
  OpContext op = group.Context(node);
  const ProductShape s = *ReadProductOfRows(group.site());
  const MicroKernel kernel = *FindKernel(group.site(), s);
  std::vector<Expr> dims = s.ResultDims(op.out.dims);
  if (!kernel.IsPlain()) {
    const int64_t panel = ValueOf(point, "nv") * kernel.lanes();
    dims.back() = IndexConst(CeilDiv(s.n, panel) * panel);
  }
  const int64_t depth = CeilDiv(s.k, kernel.depth()) * kernel.depth();
  group.Mark(op.name, BlockRole::kAnchor, kernel.unit.row);
  const DType wide = s.types.accumulator;
  const te::Tensor product = te::Compute(op.name, dims, [&](const Indices& o) {
    te::Axis k = te::ReduceAxis("k", IndexConst(depth));
    Indices a = s.RowAt({o.begin(), o.end() - 1}, op.in[0].dims);
    a.push_back(k.var);
    const Indices b = s.trans_b ? Indices{o.back(), k.var} : Indices{k.var, o.back()};
    return te::Sum(CastExpr::Make(wide, op.in[0].at(a)) * CastExpr::Make(wide, op.in[1].at(b)),
                   {k});
  });
  return As(op.out.dtype, {wide, op.out.dims, [=, own = op.out.dims](const Indices& i) {
                             Indices at = s.RowsOf({i.begin(), i.end() - 1}, own);
                             at.push_back(i.back());
                             return product.At(at);
                           }});
}

void ScheduleIt(Schedule& s, const Parts& parts, const Machine& machine, const Point& point) {
  const std::string anchor = OnlyBlock(s, parts, BlockRole::kAnchor);
  const int64_t lanes =
      KernelOf(machine, PartOf(parts, anchor).row, WrittenType(s, anchor)).lanes();
  Names axes = s.GetLoops(OnlyBlock(s, parts, BlockRole::kOutput));
  // The product may have all rows on one axis.
  const auto rows = static_cast<long>(axes.size() + 1 - s.GetSpatialLoops(anchor).size());
  if (rows > 1) {
    const std::string fused = s.Fuse({axes.begin(), axes.begin() + rows});
    axes = {fused, axes.back()};
  }
  const size_t r = axes.size();
  Names lead(axes.begin(), axes.end() - 2);
  Names i = s.SplitBy(axes[r - 2], {"-1", "$row_block", "$tile_rows"});
  Names j = s.SplitBy(axes[r - 1], {"-1", "$nv", std::to_string(lanes)});
  FillTile(s, parts, machine, point, Concat({lead, {i[0], j[0], i[1]}}), {i[2], j[1], j[2]});
}

constexpr OpKind kOps[] = {OpKind::kMatMul};

}  // namespace

extern const Algorithm kPackedMatMul;
const Algorithm kPackedMatMul = {"packed_matmul", kOps, IsFor, SpaceOf,
                                 Wants,           Work, Build, ScheduleIt};

}  // namespace tenon::ops
