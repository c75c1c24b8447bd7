// Matrix product with a packed second operand (Goto's scheme as in BLIS), or one for each leading
// place: panels of nv vectors of columns, contiguous along k, made ahead from constant weights;
// rows of the first operand are read in place by broadcast. A block of rows meets each panel in
// turn. One of the two, the block or a panel, stays in the second-level cache, and the other is
// streamed: where k is long, a few rows fill that cache, and panels would come from farther at
// every few tiles. What multiplies is a micro-kernel of vectors: multiply-adds of one element of k,
// or dot products of a few neighbours, for which both operands are padded along k to whole steps.
// Hints ask for the next panel meanwhile.
//
//   out[…, i, j]  →  for …, i / (row_block · tile_rows), j / (nv · lanes), row_block:
//                      for k / depth: tile[tile_rows, nv, lanes] += a[i, k] · panel[k]
//                      store the tile, with what follows the product
#include <algorithm>

#include "arith/analyzer.h"
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
  const auto s = ReadAnyProduct(site);
  const auto kernel = s ? FindKernel(site, *s) : std::nullopt;
  // Steps of several neighbours along k need both operands padded to whole ones, k last.
  if (!kernel || ((s->is_open || s->trans_a) && !kernel->IsPlain())) return false;
  // A row or two read a matrix of their own in little more time than packing it takes. A single
  // column has no lanes.
  return !(s->batched && s->m < 3) && AsInt(site.result().dims.back()) != 1;
}

// A ragged last vector is stored by mask, so any number of columns has its panels; narrow results
// get the vectors they need.
int64_t Vectors(const ProductShape& s, const MicroKernel& kernel) {
  const int64_t vectors = CeilDiv(s.n, kernel.lanes());
  return vectors > 4 ? CeilDiv(vectors, 4) * 4 : vectors;
}

Space SpaceOf(const Site& site) {
  const ProductShape s = *ReadAnyProduct(site);
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
  // Half of the second-level cache holds a block's rows, so that panels alone are streamed; or a
  // panel, so that rows alone are.
  const Expr block = space.Add({"row_block", OneTo(kMaxRowBlock), false, false});
  const int64_t k = std::max<int64_t>(s.k, 1);
  const Expr one = Eq(block, IndexConst(1));
  const Expr half = IndexConst(SecondLevelBytes(site.machine) / 2);
  const Expr rows_fit = Le(block * rows * IndexConst(k * s.a.Bytes()), half);
  const Expr panel_fits = Le(nv * IndexConst(kernel.lanes() * k * s.b.Bytes()), half);
  space.Require(Or(one, Or(rows_fit, panel_fits)));
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
  const int64_t least_n = site.LeastSizes(site.result()).back();
  const auto panels_of = [&](int64_t n) { return (IndexConst(n - 1) + panel) / panel; };
  outer.emplace_back(panels_of(s.n), panels_of(std::max<int64_t>(least_n, 1)));
  outer.emplace_back(block, Min(block, (IndexConst(s.least.back() - 1) + rows) / rows));
  AddParallelLoops(&space, outer, is_open);
  return space;
}

std::vector<Want> Wants(const Site& site, const Point& point) {
  const ProductShape s = *ReadAnyProduct(site);
  const MicroKernel kernel = *FindKernel(site, s);
  std::vector<Want> wants = {
      {site.node().inputs[1],
       kernel.Panels(s.trans_b, ValueOf(point, "nv"), static_cast<int>(site.input(1).rank()) - 2)}};
  const StorageDesc rows = kernel.Rows(site.input(0).dims, 1);
  if (!rows.IsPlain() || !kernel.IsPlain()) wants.push_back({site.node().inputs[0], rows});
  WantPlainResults(site, &wants);
  return wants;
}

// Of a product, cut as a point says.
struct Tiles {
  int64_t panels, columns;  // of the second operand; columns of each
  int64_t count, rows;      // of the first
  int64_t blocks;           // of rows, at each leading place
  int64_t last;             // tiles of the last one
};

Tiles TilesOf(const ProductShape& s, const MicroKernel& kernel, const Point& point) {
  const int64_t nv = ValueOf(point, "nv"), rows = ValueOf(point, "tile_rows");
  const int64_t block = ValueOf(point, "row_block");
  const int64_t count = CeilDiv(s.m, rows), blocks = CeilDiv(count, block);
  return {CeilDiv(s.n, nv * kernel.lanes()), nv * kernel.lanes(), count, rows, blocks,
          count - (blocks - 1) * block};
}

// The first tile of a block to meet a panel waits for it: in the time of one tile it comes from
// where the whole matrix lies. The others find it nearer.
void AddTurns(WorkDescription* work, const Site& site, const MicroKernel& kernel,
              const ProductShape& s, const Tiles& t) {
  const int64_t nv = t.columns / kernel.lanes();
  const auto turns = static_cast<double>(t.panels * CeilDiv(s.k, kernel.depth()));
  const auto bytes = static_cast<double>(t.columns * kernel.depth() * s.b.Bytes());
  const auto level = [&](double of) { return site.machine.LevelFor(static_cast<int64_t>(of)); };
  const Stream once = {level(BorderBytes(site.region)), bytes};
  const Stream again = s.batched ? once : Stream{level(BytesOf(site.region, site.input(1))), bytes};
  const auto add = [&](int64_t rows, int64_t tiles, const Stream& stream) {
    work->AddTileSteps(rows, nv, turns * static_cast<double>(tiles), stream);
  };
  const int64_t full = s.m / t.rows, rest = s.m % t.rows;
  const bool alone = rest > 0 && t.last == 1;  // in the last block
  const int64_t first = s.Lead() * (t.blocks - (alone ? 1 : 0));
  add(t.rows, std::min<int64_t>(first, 1), once);
  add(t.rows, first - 1, again);
  add(t.rows, s.Lead() * full - first, {});
  add(rest, rest > 0 ? s.Lead() : 0, alone ? (first > 0 ? again : once) : Stream());
}

// The tiles after the first stream their panel from the nearest level that holds it beside the rows
// of a tile, and each its rows from the one that holds all of the block beside a panel.
void AddTileTraffic(WorkDescription* work, const ProductShape& s, const Machine& machine,
                    const Tiles& t) {
  const int64_t k = std::max<int64_t>(s.k, 1);
  const int64_t panel = k * t.columns * s.b.Bytes(), rows = k * t.rows * s.a.Bytes();
  const int64_t block = CeilDiv(t.count, std::max<int64_t>(t.blocks, 1)) * rows;
  const auto stream = [&](int64_t bytes, int64_t beside, int64_t times) {
    if (machine.LevelFor(bytes) == 0) return;
    // Three quarters of a level.
    const size_t level = std::clamp<size_t>(machine.LevelFor((bytes + beside) * 2 / 3), 1,
                                            machine.memory.size() - 1);
    work->bytes[level] += static_cast<double>(bytes) * static_cast<double>(times);
  };
  stream(panel, rows, s.Lead() * t.panels * (t.count - t.blocks));
  stream(rows, panel + block - rows, s.Lead() * t.panels * t.count);
}

WorkDescription Work(const Site& site, const Point& point) {
  const ProductShape s = *ReadAnyProduct(site);
  const MicroKernel kernel = *FindKernel(site, s);
  const Tiles t = TilesOf(s, kernel, point);
  WorkDescription work;
  work.type = s.types.accumulator;
  work.unit = kernel.unit;
  AddTurns(&work, site, kernel, s, t);
  work.vector_ops = EpilogueElements(site);
  AddProductBytes(&work, site, (s.batched ? 1 : s.Lead()) * t.blocks);
  AddTileTraffic(&work, s, site.machine, t);
  std::vector<int64_t> outer = s.lead;
  outer.insert(outer.end(), {t.blocks, CeilDiv(s.n, t.columns), ValueOf(point, "row_block")});
  ShareOut(&work, site.machine, outer, point);
  return work;
}

// Where an operand has its matrix for a place of the result.
Indices MatrixAt(const Operand& x, const Indices& o, const std::vector<Expr>& dims) {
  Indices at;
  for (size_t i = 0; i + 2 < x.dims.size(); ++i) {
    const size_t j = o.size() - x.dims.size() + i;
    at.push_back(BroadcastIndex(x.dims[i], o[j], dims[j]));
  }
  return at;
}

// Columns that fill the last panel are computed, and not stored: a dot product knows no masks, and
// others would have them in their innermost loop.
Operand Build(Group& group, const graph::Node& node, const Point& point) {
  OpContext op = group.Context(node);
  const ProductShape s = *ReadAnyProduct(group.site());
  const MicroKernel kernel = *FindKernel(group.site(), s);
  std::vector<Expr> dims = s.ResultDims(op.out.dims);
  const int64_t panel = ValueOf(point, "nv") * kernel.lanes();
  dims.back() = Simplify(CeilDiv(dims.back(), IndexConst(panel)) * panel);
  const Expr k_dim = op.in[1].dims[op.in[1].dims.size() - (s.trans_b ? 1 : 2)];
  const Expr depth = Simplify(CeilDiv(k_dim, IndexConst(kernel.depth())) * kernel.depth());
  group.Mark(op.name, BlockRole::kAnchor, kernel.unit.row);
  const DType wide = s.types.accumulator;
  const te::Tensor product = te::Compute(op.name, dims, [&](const Indices& o) {
    te::Axis k = te::ReduceAxis("k", depth);
    Indices a = s.RowAt({o.begin(), o.end() - 1}, op.in[0].dims);
    if (s.batched) {
      a = MatrixAt(op.in[0], o, op.out.dims);
      a.push_back(o[o.size() - 2]);
    }
    a.insert(a.end() - (s.trans_a ? 1 : 0), k.var);
    Indices b = MatrixAt(op.in[1], o, op.out.dims);
    b.insert(b.end(), {k.var, o.back()});
    if (s.trans_b) std::swap(b[b.size() - 1], b[b.size() - 2]);
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
  FillTile(s, parts, machine, point, Concat({lead, {i[0], j[0], i[1]}}), {i[2], j[1], j[2]}, j[0]);
}

constexpr OpKind kOps[] = {OpKind::kMatMul};

}  // namespace

extern const Algorithm kPackedMatMul;
const Algorithm kPackedMatMul = {"packed_matmul", kOps,       IsFor, SpaceOf, Wants, Work,
                                 Build,           ScheduleIt, 6};

}  // namespace tenon::ops
