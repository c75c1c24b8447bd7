// Matrix product by a unit that multiplies whole tiles and keeps them in registers of its own. A
// few tiles of sums stay there while tiles of both operands pass; the second operand is packed
// ahead so that the tiles of one step lie behind each other, the first is read where it lies, with
// zeros up to whole tiles. Sums leave through memory that the first-level cache holds, where what
// follows the product meets them as vectors.
//
//   out[…, i, j]  →  for …, i / (row_block · tile_rows · 16), j / (nv · 16), row_block:
//                      for k / depth: bring tile_rows tiles of a and nv of b
//                                     sums[tile_rows, nv] += a · b, tile by tile
//                      sums to memory, from there with what follows the product to out
#include <algorithm>

#include "graph/dims.h"
#include "intrin/tile_intrinsic.h"
#include "ops/algorithm/matrix_tiles.h"
#include "ops/conv_geometry.h"
#include "ops/group.h"
#include "ops/micro_kernel.h"
#include "ops/tiling.h"

namespace tenon::ops {

using graph::OpKind;
using te::Indices;

namespace {

constexpr int64_t kMostAlong = 4;     // tiles of sums along one axis
constexpr int64_t kMaxRowBlock = 32;  // tiles of rows that may meet a panel one after another

std::optional<MicroKernel> FindKernel(const Site& site, const ProductShape& s) {
  return TileKernelFor(site.machine, s.a, s.b, s.types.accumulator);
}

bool IsFor(const Site& site) {
  const auto s = ReadProduct(site);
  return s && FindKernel(site, *s);
}

Space SpaceOf(const Site& site) {
  const ProductShape s = *ReadProduct(site);
  const MicroKernel kernel = *FindKernel(site, s);
  const int64_t row_tiles = CeilDiv(s.m, kernel.rows());
  Space space;
  const int64_t columns = CeilDiv(s.n, kernel.lanes());
  const Expr nv = space.Add({"nv", OneTo(std::min(columns, kMostAlong)), true, true});
  const Expr rows = space.Add({"tile_rows", OneTo(std::min(row_tiles, kMostAlong)), true, true});
  space.Require(Le(rows * nv + rows + nv, IndexConst(kNumTiles)));
  // Half of the second-level cache holds a block's rows.
  const Expr block = space.Add({"row_block", OneTo(kMaxRowBlock), false, false});
  const int64_t bytes = std::max<int64_t>(s.k, 1) * kernel.rows() * s.a.Bytes();
  const Expr one = Eq(block, IndexConst(1));
  space.Require(Or(one, Le(block * rows * bytes, IndexConst(SecondLevelBytes(site.machine) / 2))));
  auto ceil_div = [](int64_t a, const Expr& b) {
    return (IndexConst(std::max<int64_t>(a, 1) - 1) + b) / b;
  };
  const int64_t least_tiles = CeilDiv(s.least.back(), kernel.rows());
  const Expr blocks = ceil_div(row_tiles, block * rows);
  // Blocks of near-equal size: no larger than as many of them need.
  space.Require(Le(block, (ceil_div(row_tiles, rows) - 1) / blocks + 1));
  std::vector<TripCount> outer = TripCounts(s.lead, s.least);
  outer.emplace_back(blocks, ceil_div(least_tiles, block * rows));
  outer.emplace_back(ceil_div(columns, nv));
  outer.emplace_back(block, Min(block, ceil_div(least_tiles, rows)));
  AddParallelLoops(&space, outer);
  return space;
}

std::vector<Want> Wants(const Site& site, const Point& point) {
  const ProductShape s = *ReadProduct(site);
  const MicroKernel kernel = *FindKernel(site, s);
  const graph::Node& n = site.node();
  std::vector<Want> wants = {
      {n.inputs[1], kernel.Panels(s.trans_b, ValueOf(point, "nv"))},
      {n.inputs[0], kernel.Rows(site.input(0).dims, ValueOf(point, "tile_rows"))}};
  WantPlainResults(site, &wants);
  return wants;
}

WorkDescription Work(const Site& site, const Point& point) {
  const ProductShape s = *ReadProduct(site);
  const MicroKernel kernel = *FindKernel(site, s);
  const int64_t nv = ValueOf(point, "nv"), rows = ValueOf(point, "tile_rows");
  const int64_t block = ValueOf(point, "row_block");
  const int64_t row_tiles = CeilDiv(CeilDiv(s.m, kernel.rows()), rows);
  const int64_t blocks = CeilDiv(row_tiles, block);
  const int64_t panels = CeilDiv(CeilDiv(s.n, kernel.lanes()), nv);
  const auto tiles = static_cast<double>(s.Lead() * panels * row_tiles);
  WorkDescription work;
  work.type = s.types.accumulator;
  work.unit = kernel.unit;
  work.AddTileSteps(rows, nv, tiles * static_cast<double>(CeilDiv(s.k, kernel.depth())));
  // The sums go to memory and come back.
  const auto sums = static_cast<double>(rows * nv * kernel.rows() * kernel.lanes());
  work.vector_ops = EpilogueElements(site) + 2 * tiles * sums;
  AddProductBytes(&work, site, s.Lead() * blocks);
  std::vector<int64_t> outer = s.lead;
  outer.insert(outer.end(), {blocks, panels, block});
  ShareOut(&work, site.machine, outer, point);
  return work;
}

// Everything in whole tiles, so that nothing is guarded before results are stored.
Operand Build(Group& group, const graph::Node& node, const Point& point) {
  OpContext op = group.Context(node);
  const ProductShape s = *ReadProduct(group.site());
  const MicroKernel kernel = *FindKernel(group.site(), s);
  const size_t r = op.out.dims.size();
  const int64_t rows = kernel.rows(), lanes = kernel.lanes(), depth = kernel.depth();
  const int64_t row_group = ValueOf(point, "tile_rows"), nv = ValueOf(point, "nv");
  TiledProduct p;
  p.lead.assign(op.out.dims.begin(), op.out.dims.end() - 2);
  p.groups = graph::DimCeilDiv(op.out.dims[r - 2], IndexConst(row_group * rows));
  p.tile_rows = row_group;
  p.columns = IndexConst(CeilDiv(s.n, nv * lanes) * nv);
  p.steps = {IndexConst(CeilDiv(s.k, depth))};
  p.wide = s.types.accumulator;
  p.a = [&](Indices at, const Expr& rows_of, const Expr& tile, const Indices& step, const Expr& row,
            const Expr& k) {
    at.push_back((rows_of * row_group + tile) * rows + row);
    at.push_back(step[0] * depth + k);
    return op.in[0].at(at);
  };
  p.b = [&](const Indices&, const Expr& tile, const Indices& step, const Expr& k,
            const Expr& lane) {
    const Expr at = step[0] * depth + k, column = tile * lanes + lane;
    return op.in[1].at(s.trans_b ? Indices{column, at} : Indices{at, column});
  };
  return As(op.out.dtype, BuildTiles(group, op, kernel, p));
}

void ScheduleIt(Schedule& s, const Parts& parts, const Machine& machine, const Point& point) {
  const std::string sums = OnlyBlock(s, parts, BlockRole::kAnchor);
  const MicroKernel kernel = KernelOf(machine, PartOf(parts, sums).row, WrittenType(s, sums));
  const std::string rows = std::to_string(kernel.rows()), lanes = std::to_string(kernel.lanes());
  Names axes = s.GetLoops(OnlyBlock(s, parts, BlockRole::kOutput));
  const size_t r = axes.size();
  Names i = s.SplitBy(axes[r - 2], {"-1", "$row_block", "$tile_rows", rows});
  Names j = s.SplitBy(axes[r - 1], {"-1", "$nv", lanes});
  const Names lead(axes.begin(), axes.end() - 2);
  const Names outer = Concat({lead, {i[0], j[0], i[1]}});
  s.Reorder(Concat({outer, {i[2], i[3], j[1], j[2]}}));
  s.Unroll(j[1]);
  s.Vectorize(j[2]);
  ScheduleTiles(s, parts, machine, sums, i[1], 0, j[0]);
  ParallelFirst(s, outer, ValueOf(point, "parallel_loops"));
  ScheduleHalos(s, parts, machine);
}

constexpr OpKind kOps[] = {OpKind::kMatMul};

}  // namespace

extern const Algorithm kTileMatMul;
const Algorithm kTileMatMul = {"tile_matmul", kOps,  IsFor,      SpaceOf, Wants,
                               Work,          Build, ScheduleIt, 4};

}  // namespace tenon::ops
