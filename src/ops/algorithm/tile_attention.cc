// Attention by a unit that multiplies whole tiles and keeps them in registers of its own: by blocks
// of queries, as `attention` is, with both products in tiles. Keys and values of a head are packed
// so that the tiles of a step lie one behind the other, the queries of a block are brought into
// rows, and sums leave through memory that the first-level cache holds. Weights are rounded to the
// type of the factors, and are rows of the second product where they lie.
//
//   for heads: keys[keys / 16, depth / 32, 32, 16], values[width / 16, keys / 32, 32, 16]
//     for blocks of tile_rows · 16 queries:
//       for keys / (score_tiles · 16): sums[tile_rows, score_tiles] = q · keys, scaled and masked
//       row maxima, exponentials, sums
//       for width / (out_tiles · 16): sums[tile_rows, out_tiles] = exponentials · values
#include <algorithm>

#include "arith/analyzer.h"
#include "graph/dims.h"
#include "intrin/tile_intrinsic.h"
#include "ir/visit.h"
#include "ops/algorithm/attention_steps.h"
#include "ops/algorithm/matrix_tiles.h"
#include "ops/row_steps.h"
#include "ops/tiling.h"

namespace tenon::ops {

using graph::OpKind;
using te::Indices;

namespace {

const DType kF32 = DType::Float(32);
constexpr int64_t kMostAlong = 4;  // tiles of sums along one axis

struct Shape {
  std::vector<int64_t> lead;  // heads; typical, as are queries
  std::vector<int64_t> least;
  int64_t queries, keys, depth, width;
  Expr all_queries;
  MicroKernel kernel;

  int64_t Heads() const {
    int64_t n = 1;
    for (int64_t d : lead) n *= d;
    return n;
  }
  int64_t DepthSteps() const { return CeilDiv(depth, kernel.depth()); }
  int64_t KeySteps() const { return CeilDiv(keys, kernel.depth()); }
};

std::optional<Shape> ReadShape(const Site& site) {
  const graph::TensorType &q = site.input(0), &k = site.input(1), &v = site.input(2),
                          &y = site.result();
  if (y.rank() < 3 || q.dtype != k.dtype || q.dtype != v.dtype) return std::nullopt;
  const auto keys = AsInt(k.dims[k.dims.size() - 2]), depth = AsInt(q.dims.back()),
             width = AsInt(y.dims.back());
  const auto kernel = TileKernelFor(site.machine, q.dtype, k.dtype, kF32);
  if (!keys || !depth || !width || !kernel) return std::nullopt;
  const std::vector<int64_t> sizes = site.Sizes(y);
  std::vector<int64_t> least = site.LeastSizes(y);
  least.resize(least.size() - 2);
  return Shape{{sizes.begin(), sizes.end() - 2},
               std::move(least),
               sizes[sizes.size() - 2],
               *keys,
               *depth,
               *width,
               y.dims[y.dims.size() - 2],
               *kernel};
}

bool IsFor(const Site& site) {
  const auto s = ReadShape(site);
  if (!s || s->keys < s->kernel.lanes() || s->width < s->kernel.lanes()) return false;
  return FollowersHaveItsShape(site);
}

Space SpaceOf(const Site& site) {
  const Shape s = *ReadShape(site);
  const auto along = [](int64_t n, int64_t block) {
    return OneTo(std::min(CeilDiv(std::max<int64_t>(n, 1), block), kMostAlong));
  };
  Space space;
  const Expr scores = space.Add({"score_tiles", along(s.keys, s.kernel.lanes()), true, true});
  const Expr out = space.Add({"out_tiles", along(s.width, s.kernel.lanes()), true, true});
  const Expr rows = space.Add({"tile_rows", along(s.queries, s.kernel.rows()), true, true});
  for (const Expr& columns : {scores, out})
    space.Require(Le(rows * columns + rows + columns, IndexConst(kNumTiles)));
  AddParallelLoops(&space, TripCounts(s.lead, s.least), !AreNumbers(site.result()));
  return space;
}

std::vector<Want> Wants(const Site& site, const Point&) {
  std::vector<Want> wants;
  WantPlainResults(site, &wants);
  return wants;
}

WorkDescription Work(const Site& site, const Point& point) {
  const Shape s = *ReadShape(site);
  const int64_t rows = ValueOf(point, "tile_rows"), lanes = s.kernel.lanes();
  const int64_t scores = ValueOf(point, "score_tiles"), out = ValueOf(point, "out_tiles");
  const int64_t groups = CeilDiv(s.queries, rows * s.kernel.rows());
  const auto blocks = static_cast<double>(s.Heads() * groups);
  const int64_t score_panels = CeilDiv(s.keys, scores * lanes),
                out_panels = CeilDiv(s.width, out * lanes);
  WorkDescription work;
  work.unit = s.kernel.unit;
  work.AddTileSteps(rows, scores, blocks * static_cast<double>(score_panels * s.DepthSteps()));
  work.AddTileSteps(rows, out, blocks * static_cast<double>(out_panels * s.KeySteps()));
  const auto block_rows = static_cast<double>(rows * s.kernel.rows());
  const double sums = block_rows * static_cast<double>(lanes) *
                      static_cast<double>(score_panels * scores + out_panels * out);
  // Scale, mask, maximum, exponential, sum; and rounding to fewer bits. Sums go to memory and back.
  constexpr double kForEach = 23;
  work.vector_ops = blocks * (block_rows * static_cast<double>(s.keys) * kForEach + 2 * sums) +
                    EpilogueElements(site);
  work.packed_bytes = static_cast<double>(s.Heads() * s.keys * (s.depth + s.width)) *
                      static_cast<double>(s.kernel.unit.b.Bytes());
  const double bytes = BorderBytes(site.region);
  work.bytes[site.machine.LevelFor(static_cast<int64_t>(bytes))] = bytes;
  ShareOut(&work, site.machine, s.lead, point);
  return work;
}

// A second factor [steps, columns] in tiles: column tile, step, group along it, lane, neighbour.
te::Tensor PackTiles(
    Group& group, const std::string& name, const std::vector<Expr>& lead, const MicroKernel& kernel,
    int64_t columns, int64_t steps,
    const std::function<Expr(const Indices& lead, const Expr& k, const Expr& column)>& at) {
  const size_t l = lead.size();
  return te::Compute(group.Mark(name, BlockRole::kPack),
                     Behind(lead, {IndexConst(columns), IndexConst(steps),
                                   IndexConst(kernel.depth() / kernel.group),
                                   IndexConst(kernel.lanes()), IndexConst(kernel.group)}),
                     [&](const Indices& i) -> te::Body {
                       return at({i.begin(), i.begin() + static_cast<long>(l)},
                                 i[l + 1] * kernel.depth() + i[l + 2] * kernel.group + i[l + 4],
                                 i[l] * kernel.lanes() + i[l + 3]);
                     });
}

// Everything in whole tiles: rows, keys and columns beyond the node's own are zeros, and what is
// made of them nobody reads.
Operand Build(Group& group, const graph::Node& node, const Point& point) {
  OpContext op = group.Context(node);
  const Shape s = *ReadShape(group.site());
  const MicroKernel& kernel = s.kernel;
  const int64_t lanes = kernel.lanes(), depth = kernel.depth();
  const int64_t tile_rows = ValueOf(point, "tile_rows"), block_rows = tile_rows * kernel.rows();
  const std::vector<Expr> lead(op.out.dims.begin(), op.out.dims.end() - 2);
  const Expr groups = graph::DimCeilDiv(s.all_queries, IndexConst(block_rows));
  const Expr queries = graph::DimMul(groups, IndexConst(block_rows));
  const Expr whole_depth = IndexConst(s.DepthSteps() * depth);
  const Expr whole_keys = IndexConst(s.KeySteps() * depth);
  const auto columns_of = [&](const char* knob, int64_t n) {
    const int64_t tiles = ValueOf(point, knob);
    return CeilDiv(n, tiles * lanes) * tiles;
  };
  // A product whose rows are those of `a` in tiles and whose second factor is packed.
  const auto product = [&](const te::Tensor& a, const te::Tensor& b, int64_t columns,
                           int64_t steps) {
    TiledProduct p;
    p.lead = lead;
    p.groups = groups;
    p.tile_rows = tile_rows;
    p.columns = IndexConst(columns);
    p.steps = {IndexConst(steps)};
    p.wide = kF32;
    p.own_b = true;
    p.a = [=](const Indices& at, const Expr& rows_of, const Expr& tile, const Indices& step,
              const Expr& row, const Expr& k) {
      return a.At(Behind(
          at, {(rows_of * tile_rows + tile) * kernel.rows() + row, step[0] * kernel.depth() + k}));
    };
    p.b = [=](const Indices& at, const Expr& tile, const Indices& step, const Expr& k,
              const Expr& lane) {
      return b.At(Behind(at, {tile, step[0], k / kernel.group, lane, k % kernel.group}));
    };
    return p;
  };

  const Operand &q = op.in[0], &k = op.in[1], &v = op.in[2];
  const te::Tensor rows =
      te::Compute(group.Mark(op.name + "_q", BlockRole::kQueries),
                  Behind(lead, {queries, whole_depth}), [&](const Indices& i) -> te::Body {
                    return PaddedAt(q, {i.begin(), i.end() - 2}, i[i.size() - 2], i.back(), queries,
                                    whole_depth);
                  });
  const int64_t score_columns = columns_of("score_tiles", s.keys);
  const Expr all_columns = IndexConst(score_columns * lanes);
  const te::Tensor keys =
      PackTiles(group, op.name + "_kt", lead, kernel, score_columns, s.DepthSteps(),
                [&](const Indices& at, const Expr& d, const Expr& j) {
                  return PaddedAt(k, at, j, d, all_columns, whole_depth);
                });
  OpContext first = op;
  first.name = op.name + "_qk";
  TiledProduct scores = product(rows, keys, score_columns, s.DepthSteps());
  scores.sums = BlockRole::kScores;
  first.out.dims = Behind(lead, {queries, all_columns});  // so that rows begin with a line
  const Operand dots = BuildTiles(group, first, kernel, scores);
  const te::Tensor score = te::Compute(group.Mark(op.name + "_score", BlockRole::kMasked),
                                       first.out.dims, [&](const Indices& i) -> te::Body {
                                         return ScoreOf(op, i, dots.at(i), queries, all_columns);
                                       });
  // Of whole steps of the product, and of the sums beside it.
  const int64_t in_block = std::max(depth, PartialWidth(s.keys, group.site().machine.Lanes(kF32)));
  const AttentionWeights weights =
      WeightsOfScores(group, op.name, score, InRow(lead, queries), IndexConst(s.keys),
                      IndexConst(CeilDiv(s.keys, in_block) * in_block), kernel.unit.a);

  const int64_t out_columns = columns_of("out_tiles", s.width);
  const Expr whole_width = IndexConst(out_columns * lanes);
  const te::Tensor values =
      PackTiles(group, op.name + "_v", lead, kernel, out_columns, s.KeySteps(),
                [&](const Indices& at, const Expr& j, const Expr& column) {
                  return PaddedAt(v, at, j, column, whole_keys, whole_width);
                });
  const Operand weighted =
      BuildTiles(group, op, kernel, product(weights.weights, values, out_columns, s.KeySteps()));
  return ResultOf(op, weighted, weights.factor);
}

// Scores of a block of queries, scaled and masked as they leave the tiles.
void ScheduleScores(Schedule& s, const Parts& parts, const Machine& machine,
                    const MicroKernel& kernel, const std::string& at) {
  const std::string masked = OnlyBlock(s, parts, BlockRole::kMasked);
  s.SetScope(WrittenBuffer(s, masked), Scope::kLocal);
  s.ComputeAt(masked, at);
  const Names tile = LoopsInside(s, masked, at).spatial;
  if (!s.ok()) return;
  const Names i = s.SplitBy(tile[0], {"-1", std::to_string(kernel.rows())});
  const Names j = s.SplitBy(tile[1], {"-1", "$score_tiles", std::to_string(kernel.lanes())});
  s.Reorder({j[0], i[0], i[1], j[1], j[2]});
  s.Unroll(j[1]);
  s.Vectorize(j[2]);
  ScheduleTiles(s, parts, machine, OnlyBlock(s, parts, BlockRole::kScores), j[0], 0, "");
}

// The queries of a block in rows, and keys and values of a head in tiles. Of keys neighbours are
// neighbours in memory, and are moved together.
void SchedulePacks(Schedule& s, const Parts& parts, const std::string& head,
                   const std::string& block, int64_t lanes) {
  const std::string queries = OnlyBlock(s, parts, BlockRole::kQueries);
  s.SetScope(WrittenBuffer(s, queries), Scope::kLocal);
  s.ComputeAt(queries, block);
  if (!s.ok()) return;
  VectorizeLast(s, LoopsInside(s, queries, block).spatial.back(), lanes);
  const Names packs = BlocksOf(s, parts, BlockRole::kPack);
  for (const std::string& pack : packs) {
    s.SetScope(WrittenBuffer(s, pack), Scope::kLocal);
    s.ComputeAt(pack, head);
    if (!s.ok()) return;
    const Names loops = LoopsInside(s, pack, head).spatial;
    const size_t n = loops.size();
    s.Unroll(loops[n - 1]);
    if (pack == packs[0]) s.Reorder({loops[n - 2], loops[n - 3], loops[n - 1]});
  }
}

void ScheduleIt(Schedule& s, const Parts& parts, const Machine& machine, const Point& point) {
  const int64_t lanes = machine.Lanes(kF32);
  const std::string sums = OnlyBlock(s, parts, BlockRole::kAnchor);
  const MicroKernel kernel = KernelOf(machine, PartOf(parts, sums).row, kF32);
  const Names axes = s.GetLoops(OnlyBlock(s, parts, BlockRole::kOutput));
  const size_t r = axes.size();
  const Names i = s.SplitBy(axes[r - 2], {"-1", "$tile_rows", std::to_string(kernel.rows())});
  const Names e = s.SplitBy(axes[r - 1], {"-1", "$out_tiles", std::to_string(kernel.lanes())});
  const Names lead(axes.begin(), axes.end() - 2);
  s.Reorder(Concat({lead, {i[0], e[0], i[1], i[2], e[1], e[2]}}));
  s.Unroll(e[1]);
  s.Vectorize(e[2]);
  ScheduleTiles(s, parts, machine, sums, e[0], 0, "");
  ScheduleRowByRow(s, parts, i[0], lanes);
  ScheduleScores(s, parts, machine, kernel, i[0]);
  SchedulePacks(s, parts, lead.back(), i[0], lanes);
  ParallelFirst(s, lead, ValueOf(point, "parallel_loops"));
}

constexpr OpKind kOps[] = {OpKind::kAttention};

}  // namespace

extern const Algorithm kTileAttention;
const Algorithm kTileAttention = {"tile_attention", kOps, IsFor, SpaceOf, Wants, Work, Build,
                                  ScheduleIt,       1};

}  // namespace tenon::ops
