// Product of f32 by a unit that multiplies tiles of bf16: both factors as a high and a low part
// (ops/split_float.h), three products instead of one. The parts of the second factor are packed
// ahead; a block of rows of the first is split by the worker that needs it, so that a step finds
// its tiles one behind the other, and meets each panel in turn. Rows that are few are one block:
// then shares of the columns split it anew, which is little beside their products.
//
//   out[…, i, j]  →  for …, i / (row_block · tile_rows · 16), shares of j:
//                      parts[row_block, k / 32, 2, tile_rows, 16, 32] = low and high parts of a
//                      for j / (nv · 16) of the share, row_block:
//                        for k / 32, written out: lo · hi, hi · hi, hi · lo:
//                          bring tile_rows tiles of a and nv of b
//                          sums[tile_rows, nv] += a · b, tile by tile
//                        sums to memory, from there with what follows the product to out
#include <algorithm>

#include "graph/dims.h"
#include "intrin/tile_intrinsic.h"
#include "ops/algorithm/matrix_tiles.h"
#include "ops/split_float.h"
#include "ops/tiling.h"
#include "support/check.h"

namespace tenon::ops {

using graph::OpKind;
using te::Indices;

namespace {

const DType kF32 = DType::Float(32), kBF16 = DType::BFloat16();
constexpr int64_t kProducts = 3;  // of parts, for one of whole numbers
constexpr int64_t kMostAlong = 4;
constexpr int64_t kMostRowBlock = 32;
constexpr int64_t kMostShares = 16;

std::optional<ProductShape> ReadSplit(const Site& site) {
  const graph::TensorType &x = site.input(0), &w = site.input(1);
  if (!AreNumbers(w)) return std::nullopt;
  const std::vector<int64_t> a = site.Sizes(x), b = site.Sizes(w);
  ProductShape s;
  s.a = kF32;
  s.b = kBF16;
  s.types = {kF32, kF32};
  s.trans_b = site.node().attrs.Get<bool>("trans_b", false);
  s.lead.assign(a.begin(), a.end() - 2);
  s.m = a[a.size() - 2];
  s.k = b[s.trans_b ? 2 : 1];
  s.n = b[s.trans_b ? 1 : 2];
  s.least = site.LeastSizes(x);
  s.least.pop_back();
  if (AreNumbers(x)) {  // rows of all places are one behind the other, and fill tiles together
    s.together = true;
    s.m *= s.Lead();
    s.lead.clear();
    s.least = {s.m};
  }
  return s;
}

std::optional<MicroKernel> KernelFor(const Machine& machine) {
  return TileKernelFor(machine, kBF16, kBF16, kF32);
}

bool IsFor(const Site& site) {
  const auto s = ReadSplit(site);
  return s && s->n > 1 && s->k > 0 && KernelFor(site.machine);
}

int64_t Steps(const ProductShape& s, const MicroKernel& kernel) {
  return CeilDiv(s.k, kernel.depth());
}

// Of both parts of a tile's rows along all of k.
int64_t RowTileBytes(const ProductShape& s, const MicroKernel& kernel) {
  return Steps(s, kernel) * kernel.depth() * kernel.rows() * 2 * kBF16.Bytes();
}

Space SpaceOf(const Site& site) {
  const ProductShape s = *ReadSplit(site);
  const MicroKernel kernel = *KernelFor(site.machine);
  const int64_t row_tiles = CeilDiv(s.m, kernel.rows()), columns = CeilDiv(s.n, kernel.lanes());
  Space space;
  const Expr nv = space.Add({"nv", OneTo(std::min(columns, kMostAlong)), true, true});
  const Expr rows = space.Add({"tile_rows", OneTo(std::min(row_tiles, kMostAlong)), false, true});
  space.Require(Le(rows * nv + rows + nv, IndexConst(kNumTiles)));
  const Expr block = space.Add({"row_block", OneTo(kMostRowBlock), false, false});
  const auto ceil_div = [](int64_t a, const Expr& b) {
    return (IndexConst(std::max<int64_t>(a, 1) - 1) + b) / b;
  };
  // Half of the second-level cache holds a block's parts.
  space.Require(Or(Eq(block, IndexConst(1)), Le(block * rows * IndexConst(RowTileBytes(s, kernel)),
                                                IndexConst(SecondLevelBytes(site.machine) / 2))));
  const Expr blocks = ceil_div(row_tiles, block * rows);
  // Blocks of near-equal size: no larger than as many of them need.
  space.Require(Le(block, (ceil_div(row_tiles, rows) - 1) / blocks + 1));
  const Expr shares = space.Add({"shares", DivisorsOf(kMostShares, kMostShares), false, false});
  const Expr panels = ceil_div(columns, nv);
  space.Require(Eq(panels % shares, IndexConst(0)));
  // One block of all columns keeps one worker busy, whoever else there is.
  const Expr parts = IndexConst(std::max<int64_t>(s.Lead(), 1)) * blocks * shares;
  space.Require(Or(Lt(IndexConst(1), parts), Ne(panels % 2, IndexConst(0))));
  const int64_t least_tiles = CeilDiv(s.least.back(), kernel.rows());
  std::vector<TripCount> outer = TripCounts(s.lead, s.least);
  outer.emplace_back(blocks, ceil_div(least_tiles, block * rows));
  outer.emplace_back(shares);
  AddParallelLoops(&space, outer, !AreNumbers(site.result()));
  return space;
}

std::vector<Want> Wants(const Site& site, const Point& point) {
  const ProductShape s = *ReadSplit(site);
  // The panels of one matrix, of which each group of k has its high part before its low one.
  StorageDesc parts = KernelFor(site.machine)->Panels(s.trans_b, ValueOf(point, "nv"));
  for (graph::Blocking& b : parts.blocks) ++b.axis;
  parts.order = s.trans_b ? std::vector<int>{1, 2, 0} : std::vector<int>{2, 1, 0};
  std::vector<Want> wants = {{site.node().inputs[1], parts}};
  WantPlainResults(site, &wants);
  return wants;
}

// The first tiles of a block to meet a panel wait for it: in their time it comes from where all
// parts lie. The others find it in the nearest level that holds it, as all find their block's rows.
void AddTurns(WorkDescription* work, const Site& site, const MicroKernel& kernel,
              const ProductShape& s, const Point& point) {
  const int64_t nv = ValueOf(point, "nv"), rows = ValueOf(point, "tile_rows");
  const int64_t block = ValueOf(point, "row_block"), steps = Steps(s, kernel);
  const int64_t groups = CeilDiv(CeilDiv(s.m, kernel.rows()), rows);
  const int64_t blocks = CeilDiv(groups, block);
  const int64_t panels = CeilDiv(CeilDiv(s.n, kernel.lanes()), nv);
  const Machine& machine = site.machine;
  const auto level = [&](int64_t bytes) {
    return std::min(std::max<size_t>(machine.LevelFor(bytes), 1), machine.memory.size() - 1);
  };
  const auto turns = static_cast<double>(s.Lead() * panels * steps * kProducts);
  const double parts = BytesOf(site.region, site.input(1));
  const int64_t step_bytes = 2 * kBF16.Bytes() * kernel.depth();
  const auto per_turn = static_cast<double>(nv * kernel.lanes() * step_bytes) / kProducts;
  work->AddTileSteps(rows, nv, turns * static_cast<double>(blocks),
                     {level(static_cast<int64_t>(parts)), per_turn});
  work->AddTileSteps(rows, nv, turns * static_cast<double>(groups - blocks));
  const int64_t panel = nv * kernel.lanes() * step_bytes * steps;
  const int64_t held = block * rows * RowTileBytes(s, kernel);
  const auto stream = [&](int64_t bytes, int64_t beside, int64_t times) {
    work->bytes[level((bytes + beside) * 2 / 3)] +=
        static_cast<double>(bytes) * static_cast<double>(s.Lead() * panels * times);
  };
  stream(panel, RowTileBytes(s, kernel) * rows, groups - blocks);
  stream(RowTileBytes(s, kernel) * rows, panel + held, groups);
}

WorkDescription Work(const Site& site, const Point& point) {
  const ProductShape s = *ReadSplit(site);
  const MicroKernel kernel = *KernelFor(site.machine);
  const int64_t nv = ValueOf(point, "nv"), rows = ValueOf(point, "tile_rows");
  const int64_t block = ValueOf(point, "row_block"), shares = ValueOf(point, "shares");
  const int64_t groups = CeilDiv(CeilDiv(s.m, kernel.rows()), rows);
  const int64_t blocks = CeilDiv(groups, block);
  const int64_t panels = CeilDiv(CeilDiv(s.n, kernel.lanes()), nv);
  WorkDescription work;
  work.type = kF32;
  work.unit = kernel.unit;
  AddTurns(&work, site, kernel, s, point);
  // An element is split by about ten operations; the sums go to memory and come back.
  constexpr double kToSplit = 10;
  const auto split = static_cast<double>(s.Lead() * groups * rows * kernel.rows() * shares) *
                     static_cast<double>(Steps(s, kernel) * kernel.depth());
  const auto sums = static_cast<double>(s.Lead() * groups * panels * rows * nv) *
                    static_cast<double>(kernel.rows() * kernel.lanes());
  work.vector_ops = EpilogueElements(site) + 2 * sums + kToSplit * split;
  AddProductBytes(&work, site, s.Lead() * blocks);
  std::vector<int64_t> outer = s.lead;
  outer.insert(outer.end(), {blocks, shares});
  ShareOut(&work, site.machine, outer, point);
  return work;
}

// The parts of a's rows: of each group of row tiles, step by step, low parts before high ones.
// What both are made of is read once.
te::Tensor SplitRows(Group& group, const OpContext& op, const ProductShape& s,
                     const MicroKernel& kernel, const TiledProduct& p) {
  const std::vector<Expr> dims = s.ResultDims(op.out.dims);
  const size_t l = p.lead.size();
  const int64_t rows = kernel.rows(), depth = kernel.depth(), group_rows = p.tile_rows * rows;
  const auto behind = [l](const Indices& i, const Indices& last) {
    Indices out(i.begin(), i.begin() + static_cast<long>(l));
    out.insert(out.end(), last.begin(), last.end());
    return out;
  };
  const te::Tensor x =
      te::Compute(group.Mark(op.name + "_x", BlockRole::kRow),
                  behind(p.lead, {p.groups * group_rows, IndexConst(Steps(s, kernel) * depth)}),
                  [&](const Indices& i) -> te::Body {
                    const Expr &row = i[l], &k = i[l + 1], &all = dims[l];
                    Expr inside;
                    if (s.k % depth != 0) inside = Lt(k, IndexConst(s.k));
                    if (!AsInt(all) || *AsInt(all) % group_rows != 0)
                      inside = inside ? And(Lt(row, all), inside) : Lt(row, all);
                    Indices at = s.RowAt({i.begin(), i.end() - 1}, op.out.dims);
                    at.push_back(k);
                    const Expr element = op.in[0].at(at);
                    return inside ? Select::Make(inside, element, MakeConst(kF32, 0)) : element;
                  });
  return te::Compute(group.Mark(op.name + "_split", BlockRole::kPack),
                     behind(p.lead, {p.groups, p.steps[0], IndexConst(2), IndexConst(p.tile_rows),
                                     IndexConst(rows), IndexConst(depth)}),
                     [&](const Indices& i) -> te::Body {
                       const Expr row = (i[l] * p.tile_rows + i[l + 3]) * rows + i[l + 4];
                       const Expr element = x.At(behind(i, {row, i[l + 1] * depth + i[l + 5]}));
                       return Select::Make(Eq(i[l + 2], IndexConst(0)), LowPart(element),
                                           HighPart(element));
                     });
}

Operand Build(Group& group, const graph::Node& node, const Point& point) {
  OpContext op = group.Context(node);
  const ProductShape s = *ReadSplit(group.site());
  const MicroKernel kernel = *KernelFor(group.site().machine);
  const int64_t lanes = kernel.lanes(), depth = kernel.depth();
  const int64_t nv = ValueOf(point, "nv");
  const std::vector<Expr> dims = s.ResultDims(op.out.dims);
  TiledProduct p;
  p.lead.assign(dims.begin(), dims.end() - 2);
  p.tile_rows = ValueOf(point, "tile_rows");
  p.groups = graph::DimCeilDiv(dims[dims.size() - 2], IndexConst(p.tile_rows * kernel.rows()));
  p.columns = IndexConst(CeilDiv(s.n, nv * lanes) * nv);
  p.steps = {IndexConst(Steps(s, kernel)), IndexConst(kProducts)};
  p.wide = kF32;
  const te::Tensor split = SplitRows(group, op, s, kernel, p);
  // Low by high, high by high, high by low: a's parts stand in the other order than b's.
  p.a = [&](Indices at, const Expr& rows_of, const Expr& tile, const Indices& step, const Expr& row,
            const Expr& k) {
    at.insert(at.end(), {rows_of, step[0], (step[1] + 1) / 2, tile, row, k});
    return split.At(at);
  };
  p.b = [&](const Expr& tile, const Indices& step, const Expr& k, const Expr& lane) {
    const Expr at = step[0] * depth + k, column = tile * lanes + lane, part = step[1] / 2;
    return op.in[1].at(s.trans_b ? Indices{part, column, at} : Indices{part, at, column});
  };
  const Operand product = BuildTiles(group, op, kernel, p);
  return {kF32, op.out.dims, [=, own = op.out.dims](const Indices& i) {
            Indices at = s.RowsOf({i.begin(), i.end() - 1}, own);
            at.push_back(i.back());
            return product.at(at);
          }};
}

// The parts of a block, under the loop over shares: both of a vector at once.
void ScheduleSplit(Schedule& s, const Parts& parts, const Machine& machine, const Point& point,
                   const std::string& at) {
  const std::string split = OnlyBlock(s, parts, BlockRole::kPack);
  s.SetScope(WrittenBuffer(s, split), Scope::kLocal);
  s.ComputeAt(split, at);
  if (!s.ok()) return;
  const Names loops = LoopsInside(s, split, at).spatial;
  const size_t inside = ValueOf(point, "tile_rows") > 1 ? 3 : 2;  // of the loop over parts
  TN_CHECK(loops.size() > inside);
  const auto part = loops.end() - static_cast<long>(inside) - 1;
  const Names k = s.SplitBy(loops.back(), {"-1", std::to_string(machine.Lanes(kF32))});
  s.Reorder(Concat({{part + 1, loops.end() - 1}, {k[0], *part, k[1]}}));
  s.Unroll(k[0]);
  s.Unroll(*part);
  s.Vectorize(k[1]);
  const std::string x = OnlyBlock(s, parts, BlockRole::kRow), row = *(loops.end() - 2);
  s.SetScope(WrittenBuffer(s, x), Scope::kRegister);
  s.ComputeAt(x, row);
  if (!s.ok()) return;
  const Names read =
      s.SplitBy(LoopsInside(s, x, row).spatial.back(), {"-1", std::to_string(machine.Lanes(kF32))});
  s.Unroll(read[0]);
  s.Vectorize(read[1]);
}

void ScheduleIt(Schedule& s, const Parts& parts, const Machine& machine, const Point& point) {
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
  const Names outer = Concat({lead, {i[0], j[0]}});
  s.Reorder(Concat({outer, {j[1], i[1], i[2], i[3], j[2], j[3]}}));
  s.Unroll(j[2]);
  s.Vectorize(j[3]);
  ScheduleTiles(s, parts, machine, i[1], 1, j[1]);
  ScheduleSplit(s, parts, machine, point, j[0]);
  ParallelFirst(s, outer, ValueOf(point, "parallel_loops"));
  ScheduleHalos(s, parts, machine);
}

constexpr OpKind kOps[] = {OpKind::kSplitMatMul};

}  // namespace

extern const Algorithm kSplitMatMul;
const Algorithm kSplitMatMul = {"split_matmul", kOps, IsFor, SpaceOf,
                                Wants,          Work, Build, ScheduleIt};

}  // namespace tenon::ops
