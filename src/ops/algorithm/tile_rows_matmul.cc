// Matrix products by a unit that multiplies whole tiles and keeps them in registers of its own,
// with both factors packed: what tile_matmul does where the rows lie, at the price of writing them
// again. A few tiles of sums stay in registers while tiles of both factors pass. The second factor
// is packed ahead; a block of rows of the first is packed by the worker that needs it, so that a
// step finds its tiles one behind the other, and meets each panel in turn. Where rows are few, the
// columns are shared out, too, and the rows are packed by all workers before. Shares come first:
// blocks of rows may differ, and workers with as many shares of all blocks have the same to do.
// Sums leave through memory that the first-level cache holds, where what follows the product meets
// them as vectors.
//
//   out[…, i, j]  →  for shares of j, …, i / (row_block · tile_rows · 16):
//                      rows[row_block, k / 32, parts, tile_rows, 16, 32] = a
//                      for j / (nv · 16) of the share, row_block:
//                        for k / 32: bring tile_rows tiles of a and nv of b
//                                    sums[tile_rows, nv] += a · b, tile by tile
//                        sums to memory, from there with what follows the product to out
//
// Products of f32 by a unit for bf16 have a high and a low part of both factors
// (ops/split_float.h), and three products where others have one: low by high, high by high, high by
// low.
#include <algorithm>

#include "graph/dims.h"
#include "intrin/tile_intrinsic.h"
#include "ops/algorithm/matrix_tiles.h"
#include "ops/algorithm/split_rows.h"
#include "ops/split_float.h"
#include "ops/tiling.h"
#include "support/check.h"

namespace tenon::ops {

using graph::OpKind;
using te::Indices;

namespace {

const DType kF32 = DType::Float(32), kBF16 = DType::BFloat16();
constexpr int64_t kProductsOfParts = 3;
constexpr int64_t kMostAlong = 4;  // tiles of sums along one axis
constexpr int64_t kMostRowBlock = 32;
constexpr int64_t kMostShares = 16;

// A product as tiles see it.
struct TiledShape {
  ProductShape s;
  MicroKernel kernel;
  bool split = false;  // both factors come in two parts

  int64_t Parts() const { return split ? 2 : 1; }
  int64_t Products() const { return split ? kProductsOfParts : 1; }
  int64_t Steps() const { return CeilDiv(s.k, kernel.depth()); }
  // Of a row or a column in one step.
  int64_t StepBytes() const { return Parts() * kernel.depth() * kernel.unit.a.Bytes(); }
  // Of a tile's rows along all of k.
  int64_t RowTileBytes() const { return Steps() * kernel.rows() * StepBytes(); }
};

// The second factor of a product of parts is [2, k, n], or [2, n, k].
std::optional<ProductShape> ReadSplit(const Site& site) {
  const graph::TensorType &x = site.input(0), &w = site.input(1);
  if (!AreNumbers(w)) return std::nullopt;
  const std::vector<int64_t> a = site.Sizes(x), b = site.Sizes(w);
  ProductShape s;
  s.a = kBF16;
  s.b = kBF16;
  s.types = {kF32, kF32};
  s.trans_b = site.node().attrs.Get<bool>("trans_b", false);
  s.lead.assign(a.begin(), a.end() - 2);
  s.m = a[a.size() - 2];
  s.k = b[s.trans_b ? 2 : 1];
  s.n = b[s.trans_b ? 1 : 2];
  s.least = site.LeastSizes(x);
  s.least.pop_back();
  return s;
}

std::optional<TiledShape> ReadTiled(const Site& site, bool together) {
  const bool split = site.node().op == OpKind::kSplitMatMul;
  std::optional<ProductShape> s = split ? ReadSplit(site) : ReadProduct(site);
  if (!s || s->n < 2 || s->k < 1) return std::nullopt;
  const auto kernel = TileKernelFor(site.machine, s->a, s->b, s->types.accumulator);
  if (!kernel) return std::nullopt;
  if (together) s->PutTogether();
  return TiledShape{std::move(*s), *kernel, split};
}

// Rows of all places are one behind the other, and fill tiles: where their number is known, and
// where axes may end soon.
std::optional<TiledShape> ReadTiled(const Site& site) {
  return ReadTiled(site, AreNumbers(site.input(0)) || StandTogether(site));
}

bool IsFor(const Site& site) { return ReadTiled(site).has_value(); }

Space SpaceOf(const Site& site) {
  const TiledShape t = *ReadTiled(site);
  const ProductShape& s = t.s;
  const MicroKernel& kernel = t.kernel;
  const int64_t row_tiles = CeilDiv(s.m, kernel.rows()), columns = CeilDiv(s.n, kernel.lanes());
  Space space;
  const Expr nv = space.Add({"nv", OneTo(std::min(columns, kMostAlong)), true, true});
  const Expr rows = space.Add({"tile_rows", OneTo(std::min(row_tiles, kMostAlong)), false, true});
  space.Require(Le(rows * nv + rows + nv, IndexConst(kNumTiles)));
  // Few rows of parts may be vectors': 0 are the unit's.
  const Expr vector_rows =
      t.split ? Expr(space.Add({"vector_rows", SplitRowsChoices(site, s), false, true}))
              : IndexConst(0);
  const Expr block = space.Add({"row_block", OneTo(kMostRowBlock), false, false});
  const auto ceil_div = [](int64_t a, const Expr& b) {
    return (IndexConst(std::max<int64_t>(a, 1) - 1) + b) / b;
  };
  // Half of the second-level cache holds a block's rows.
  if (t.split) {
    space.Require(Or(Eq(vector_rows, IndexConst(0)),
                     And(And(Eq(rows, IndexConst(1)), Eq(block, IndexConst(1))),
                         FitsRegisters(vector_rows, nv, site.machine))));
  }
  space.Require(Or(Eq(block, IndexConst(1)), Le(block * rows * IndexConst(t.RowTileBytes()),
                                                IndexConst(SecondLevelBytes(site.machine) / 2))));
  // An open product is priced at sizes, where its rows still lie as in the open one.
  space.Add({"rows_together", {s.together ? 1 : 0}, false, true});
  const Expr own = Max(vector_rows, rows * IndexConst(kernel.rows()) *
                                        (IndexConst(1) - Min(vector_rows, IndexConst(1))));
  const Expr groups = ceil_div(s.m, own), blocks = (groups - 1 + block) / block;
  // Blocks of near-equal size: no larger than as many of them need.
  space.Require(Le(block, (groups - 1) / blocks + 1));
  const Expr shares = space.Add({"shares", DivisorsOf(kMostShares, kMostShares), false, false});
  const Expr panels = ceil_div(columns, nv);
  space.Require(Eq(panels % shares, IndexConst(0)));
  // One block of all columns keeps one worker busy, whoever else there is.
  const Expr parts = IndexConst(std::max<int64_t>(s.Lead(), 1)) * blocks * shares;
  space.Require(Or(Lt(IndexConst(1), parts), Ne(panels % 2, IndexConst(0))));
  std::vector<TripCount> outer = TripCounts(s.lead, s.least);
  outer.emplace(outer.begin(), shares);
  outer.emplace_back(blocks, ceil_div(s.least.back(), block * own));
  AddParallelLoops(&space, outer, !AreNumbers(site.result()));
  return space;
}

std::vector<Want> Wants(const Site& site, const Point& point) {
  const TiledShape t = *ReadTiled(site);
  StorageDesc panels = t.kernel.Panels(t.s.trans_b, ValueOf(point, "nv"));
  if (t.split) {  // of one matrix, of which each group of k has its high part before its low one
    for (graph::Blocking& b : panels.blocks) ++b.axis;
    panels.order = t.s.trans_b ? std::vector<int>{1, 2, 0} : std::vector<int>{2, 1, 0};
  }
  std::vector<Want> wants = {{site.node().inputs[1], panels}};
  WantPlainResults(site, &wants);
  return wants;
}

// The first tiles of a block to meet a panel wait for it: in their time it comes from where all
// panels lie. The others find it in the nearest level that holds it, as all find their block's
// rows.
void AddTurns(WorkDescription* work, const Site& site, const TiledShape& t, const Point& point) {
  const ProductShape& s = t.s;
  const MicroKernel& kernel = t.kernel;
  const int64_t nv = ValueOf(point, "nv"), rows = ValueOf(point, "tile_rows");
  const int64_t block = ValueOf(point, "row_block"), steps = t.Steps();
  const int64_t groups = CeilDiv(CeilDiv(s.m, kernel.rows()), rows);
  const int64_t blocks = CeilDiv(groups, block);
  const int64_t panels = CeilDiv(CeilDiv(s.n, kernel.lanes()), nv);
  const Machine& machine = site.machine;
  const auto level = [&](int64_t bytes) {
    return std::min(std::max<size_t>(machine.LevelFor(bytes), 1), machine.memory.size() - 1);
  };
  const auto turns = static_cast<double>(s.Lead() * panels * steps * t.Products());
  const double matrix = BytesOf(site.region, site.input(1));
  // Loads of rows take places among those that wait for a panel from far away, of which a core has
  // few; one tile of rows takes fewer.
  constexpr double kOneTile = 0.8;
  const size_t from = level(static_cast<int64_t>(matrix));
  double crowd = from > 1 ? static_cast<double>(rows + nv) / static_cast<double>(nv) : 1;
  if (groups == 1) crowd = std::max(kOneTile * crowd, 1.0);
  const double per_turn = crowd * static_cast<double>(nv * kernel.lanes() * t.StepBytes()) /
                          static_cast<double>(t.Products());
  work->AddTileSteps(rows, nv, turns * static_cast<double>(blocks), {from, per_turn});
  work->AddTileSteps(rows, nv, turns * static_cast<double>(groups - blocks));
  const int64_t panel = nv * kernel.lanes() * t.StepBytes() * steps;
  const int64_t held = block * rows * t.RowTileBytes();
  const auto stream = [&](int64_t bytes, int64_t beside, int64_t times) {
    work->bytes[level((bytes + beside) * 2 / 3)] +=
        static_cast<double>(bytes) * static_cast<double>(s.Lead() * panels * times);
  };
  stream(panel, t.RowTileBytes() * rows, groups - blocks);
  stream(t.RowTileBytes() * rows, panel + held, groups);
}

WorkDescription Work(const Site& site, const Point& point) {
  const TiledShape t = *ReadTiled(site, ValueOf(point, "rows_together") != 0);
  const ProductShape& s = t.s;
  if (SplitRows(point) > 0) return SplitRowsWork(site, s, point);
  const MicroKernel& kernel = t.kernel;
  const int64_t nv = ValueOf(point, "nv"), rows = ValueOf(point, "tile_rows");
  const int64_t block = ValueOf(point, "row_block"), shares = ValueOf(point, "shares");
  const int64_t groups = CeilDiv(CeilDiv(s.m, kernel.rows()), rows);
  const int64_t blocks = CeilDiv(groups, block);
  const int64_t panels = CeilDiv(CeilDiv(s.n, kernel.lanes()), nv);
  WorkDescription work;
  work.type = s.types.accumulator;
  work.unit = kernel.unit;
  AddTurns(&work, site, t, point);
  // An element is packed by about two operations and split by ten; the sums go to memory and come
  // back.
  const double to_pack = t.split ? 10 : 2;
  const auto packed = static_cast<double>(s.Lead() * groups * rows * kernel.rows()) *
                      static_cast<double>(t.Steps() * kernel.depth());
  const auto sums = static_cast<double>(s.Lead() * groups * panels * rows * nv) *
                    static_cast<double>(kernel.rows() * kernel.lanes());
  work.vector_ops = EpilogueElements(site) + 2 * sums + to_pack * packed;
  AddProductBytes(&work, site, s.Lead() * blocks);
  std::vector<int64_t> outer = s.lead;
  outer.insert(outer.begin(), shares);
  outer.push_back(blocks);
  ShareOut(&work, site.machine, outer, point);
  work.barriers = shares > 1 ? 1 : 0;
  return work;
}

// a's rows, or their parts: of each group of row tiles, step by step, low parts before high ones.
// What both parts are made of is read once.
te::Tensor PackRows(Group& group, const OpContext& op, const TiledShape& t, const TiledProduct& p) {
  const ProductShape& s = t.s;
  const std::vector<Expr> dims = s.ResultDims(op.out.dims);
  const size_t l = p.lead.size();
  const int64_t rows = t.kernel.rows(), depth = t.kernel.depth(), group_rows = p.tile_rows * rows;
  const auto behind = [l](const Indices& i, const Indices& last) {
    Indices out(i.begin(), i.begin() + static_cast<long>(l));
    out.insert(out.end(), last.begin(), last.end());
    return out;
  };
  // With zeros up to whole tiles.
  const auto element = [&](const Indices& i) {
    const Expr &row = i[l], &k = i[l + 1], &all = dims[l];
    Expr inside;
    if (s.k % depth != 0) inside = Lt(k, IndexConst(s.k));
    if (!AsInt(all) || *AsInt(all) % group_rows != 0)
      inside = inside ? And(Lt(row, all), inside) : Lt(row, all);
    Indices at = s.RowAt({i.begin(), i.end() - 1}, op.out.dims);
    at.push_back(k);
    const Expr x = op.in[0].at(at);
    return inside ? Select::Make(inside, x, MakeConst(x->dtype, 0)) : x;
  };
  te::Tensor whole;
  if (t.split) {
    whole = te::Compute(group.Mark(op.name + "_x", BlockRole::kRow),
                        behind(p.lead, {p.groups * group_rows, IndexConst(t.Steps() * depth)}),
                        [&](const Indices& i) -> te::Body { return element(i); });
  }
  return te::Compute(group.Mark(op.name + "_rows", BlockRole::kPack),
                     behind(p.lead, {p.groups, p.steps[0], IndexConst(t.Parts()),
                                     IndexConst(p.tile_rows), IndexConst(rows), IndexConst(depth)}),
                     [&](const Indices& i) -> te::Body {
                       const Expr row = (i[l] * p.tile_rows + i[l + 3]) * rows + i[l + 4];
                       const Indices at = behind(i, {row, i[l + 1] * depth + i[l + 5]});
                       if (!t.split) return element(at);
                       const Expr x = whole.At(at);
                       return Select::Make(Eq(i[l + 2], IndexConst(0)), LowPart(x), HighPart(x));
                     });
}

Operand Build(Group& group, const graph::Node& node, const Point& point) {
  OpContext op = group.Context(node);
  const TiledShape t = *ReadTiled(group.site());
  const ProductShape& s = t.s;
  if (SplitRows(point) > 0) return BuildSplitRows(group, op, s, point);
  const int64_t lanes = t.kernel.lanes(), depth = t.kernel.depth();
  const int64_t nv = ValueOf(point, "nv");
  const std::vector<Expr> dims = s.ResultDims(op.out.dims);
  TiledProduct p;
  p.lead.assign(dims.begin(), dims.end() - 2);
  p.tile_rows = ValueOf(point, "tile_rows");
  p.groups = graph::DimCeilDiv(dims[dims.size() - 2], IndexConst(p.tile_rows * t.kernel.rows()));
  p.columns = IndexConst(CeilDiv(s.n, nv * lanes) * nv);
  p.steps = {IndexConst(t.Steps())};
  if (t.split) p.steps.push_back(IndexConst(kProductsOfParts));
  p.wide = s.types.accumulator;
  const te::Tensor packed = PackRows(group, op, t, p);
  // Low by high, high by high, high by low: a's parts stand in the other order than b's.
  p.a = [&](Indices at, const Expr& rows_of, const Expr& tile, const Indices& step, const Expr& row,
            const Expr& k) {
    const Expr part = t.split ? (step[1] + 1) / 2 : IndexConst(0);
    at.insert(at.end(), {rows_of, step[0], part, tile, row, k});
    return packed.At(at);
  };
  p.b = [&](const Indices&, const Expr& tile, const Indices& step, const Expr& k,
            const Expr& lane) {
    const Expr at = step[0] * depth + k, column = tile * lanes + lane;
    Indices place = s.trans_b ? Indices{column, at} : Indices{at, column};
    if (t.split) place.insert(place.begin(), step[1] / 2);
    return op.in[1].at(place);
  };
  const Operand product = BuildTiles(group, op, t.kernel, p);
  return As(op.out.dtype, {p.wide, op.out.dims, [=, own = op.out.dims](const Indices& i) {
                             Indices at = s.RowsOf({i.begin(), i.end() - 1}, own);
                             at.push_back(i.back());
                             return product.at(at);
                           }});
}

// The rows of a block, under the loop `at`, or all of them by all workers (""); of parts, both of a
// vector at once.
void SchedulePack(Schedule& s, const Parts& parts, const Machine& machine, const Point& point,
                  const std::string& at) {
  const std::string pack = OnlyBlock(s, parts, BlockRole::kPack);
  const std::string whole = OnlyBlock(s, parts, BlockRole::kRow);  // "": it has no parts
  const std::string lanes = std::to_string(machine.Lanes(kF32));
  if (!at.empty()) {
    s.SetScope(WrittenBuffer(s, pack), Scope::kLocal);
    s.ComputeAt(pack, at);
  }
  if (!s.ok()) return;
  const Names loops = LoopsInside(s, pack, at).spatial;
  // Of the loop over parts; what is moved has no loops of one turn.
  const size_t inside = at.empty() || ValueOf(point, "tile_rows") > 1 ? 3 : 2;
  const Names k = s.SplitBy(loops.back(), {"-1", lanes});
  if (!whole.empty()) {
    TN_CHECK(loops.size() > inside);
    const auto part = loops.end() - static_cast<long>(inside) - 1;
    s.Reorder(Concat({{part + 1, loops.end() - 1}, {k[0], *part, k[1]}}));
    s.Unroll(*part);
  }
  s.Unroll(k[0]);
  s.Vectorize(k[1]);
  if (at.empty() && ValueOf(point, "parallel_loops") > 0)
    ParallelOuter(s, {loops.begin(), loops.end() - 4});
  if (whole.empty()) return;
  const std::string row = *(loops.end() - 2);
  s.SetScope(WrittenBuffer(s, whole), Scope::kRegister);
  s.ComputeAt(whole, row);
  if (!s.ok()) return;
  const Names read = s.SplitBy(LoopsInside(s, whole, row).spatial.back(), {"-1", lanes});
  s.Unroll(read[0]);
  s.Vectorize(read[1]);
}

void ScheduleIt(Schedule& s, const Parts& parts, const Machine& machine, const Point& point) {
  if (SplitRows(point) > 0) return ScheduleSplitRows(s, parts, machine, point);
  const std::string sums = OnlyBlock(s, parts, BlockRole::kAnchor);
  const MicroKernel kernel = KernelOf(machine, PartOf(parts, sums).row, WrittenType(s, sums));
  const std::string rows = std::to_string(kernel.rows()), lanes = std::to_string(kernel.lanes());
  Names axes = s.GetLoops(OnlyBlock(s, parts, BlockRole::kOutput));
  // The product may have all rows on one axis.
  const size_t own = s.GetSpatialLoops(sums).size() - 5;  // of lead
  if (axes.size() > own + 2) {
    const auto first = axes.begin() + static_cast<long>(own);
    const std::string fused = s.Fuse({first, axes.end() - 1});
    axes.erase(first, axes.end() - 1);
    axes.insert(axes.end() - 1, fused);
  }
  const size_t r = axes.size();
  Names i = s.SplitBy(axes[r - 2], {"-1", "$row_block", "$tile_rows", rows});
  Names j = s.SplitBy(axes[r - 1], {"$shares", "-1", "$nv", lanes});
  const Names lead(axes.begin(), axes.end() - 2);
  const Names outer = Concat({{j[0]}, lead, {i[0]}});
  s.Reorder(Concat({outer, {j[1], i[1], i[2], i[3], j[2], j[3]}}));
  s.Unroll(j[2]);
  s.Vectorize(j[3]);
  const bool split = !OnlyBlock(s, parts, BlockRole::kRow).empty();  // products are written out
  ScheduleTiles(s, parts, machine, sums, i[1], split ? 1 : 0, j[1]);
  SchedulePack(s, parts, machine, point, ValueOf(point, "shares") > 1 ? "" : i[0]);
  ParallelFirst(s, outer, ValueOf(point, "parallel_loops"));
  ScheduleHalos(s, parts, machine);
}

constexpr OpKind kOps[] = {OpKind::kMatMul}, kSplitOps[] = {OpKind::kSplitMatMul};

}  // namespace

extern const Algorithm kTileRowsMatMul, kSplitMatMul;
const Algorithm kTileRowsMatMul = {"tile_rows_matmul", kOps, IsFor, SpaceOf, Wants, Work, Build,
                                   ScheduleIt,         4};
const Algorithm kSplitMatMul = {"split_matmul", kSplitOps, IsFor,      SpaceOf, Wants,
                                Work,           Build,     ScheduleIt, 8};

}  // namespace tenon::ops
