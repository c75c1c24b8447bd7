// Winograd's convolution on feature maps in channel blocks, fused: what is transformed stays in the
// caches of the worker that needs it. A band of a few rows of tiles is transformed for all input
// channels; each group of output channels is then a product for every point, of the band's tiles by
// the group's panel of weights, and is transformed back and stored, with what follows, tile by
// tile.
//
//   out[n, c, h, w]  →  for n, bands of rows, columns of the band, shares of c:
//                         input[points, channels of x, tiles] = Bt · d · B
//                         for c / (nv · lanes) of the share:
//                           for points, tiles: sums[tiles, nv, lanes] += input · u
//                           for tiles: store At · sums · A, with what follows the convolution
//
// The transforms are sums and differences of vectors of channels; they read and write the
// second-level cache at worst. Weights are (t + 2)^2 / 9 times as many as those of a direct
// convolution, and meet every band: with many channels and few tiles that is what takes the time.
// Then there is one band, whose output channels are shared out: each share transforms the input
// anew, which is little, and reads weights that no other reads, in the order in which they lie.
#include <algorithm>

#include "graph/dims.h"
#include "ops/algorithm/tile_schedule.h"
#include "ops/conv_geometry.h"
#include "ops/fusing.h"
#include "ops/group.h"
#include "ops/micro_kernel.h"
#include "ops/tiling.h"
#include "ops/winograd.h"

namespace tenon::ops {

using graph::OpKind;
using te::Indices;

namespace {

const DType kF32 = DType::Float(32);
constexpr int64_t kMostRows = 4;  // of tiles in a band
constexpr int64_t kMostOpenColumns = 32;

struct Shape {
  std::vector<int64_t> x, u, y;  // dims; open ones are the typical ones
  std::vector<int64_t> least;    // the result's, at the least
  bool is_open = false;          // in an axis of space
  std::vector<int64_t> pads;
  int64_t tile = 0, down = 0, across = 0;  // tiles
};

std::optional<Shape> ReadShape(const Site& site) {
  const graph::TensorType &x = site.input(0), &u = site.input(1), &y = site.result();
  if (!AsInt(x.dims[1]) || !AreNumbers(u)) return std::nullopt;
  Shape s{site.Sizes(x),
          site.Sizes(u),
          site.Sizes(y),
          site.LeastSizes(y),
          !AreNumbers(x, 2) || !AreNumbers(y, 2),
          site.node().attrs.GetInts("pads")};
  s.tile = s.u[2] - 2;
  s.down = CeilDiv(s.y[2], s.tile);
  s.across = CeilDiv(s.y[3], s.tile);
  return s;
}

bool IsFor(const Site& site) {
  const auto s = ReadShape(site);
  // A whole tile of results, at least: fewer would leave parts of the transforms out.
  return s && site.machine.warp == 0 && site.machine.Lanes(kF32) > 1 && s->y[2] >= s->tile &&
         s->y[3] >= s->tile && s->u[0] > 1;
}

int64_t Vectors(const Shape& s, const Machine& machine) {
  return CeilDiv(s.u[0], machine.Lanes(kF32));
}

// How many rows of tiles a band can have, so that bands end where the map does.
std::vector<int64_t> RowsOfBands(const Site& site, const Shape& s) {
  if (!s.is_open) return DivisorsOf(s.down, kMostRows);
  const Expr down = graph::DimCeilDiv(site.result().dims[2], IndexConst(s.tile));
  std::vector<int64_t> rows = {1};
  while (2 * rows.back() <= kMostRows &&
         graph::ProveEqual(down % IndexConst(2 * rows.back()), IndexConst(0))) {
    rows.push_back(2 * rows.back());
  }
  return rows;
}

Space SpaceOf(const Site& site) {
  const Shape s = *ReadShape(site);
  Space space;
  const Expr nv = space.Add({"nv", DivisorsOf(Vectors(s, site.machine), 4), true, true});
  // Open sizes cut bands and tiles where they end, along a row alone.
  const int64_t widest = MaxWidth(s.across, s.is_open, site.machine);
  const Expr rows = space.Add({"band_rows", RowsOfBands(site, s), false, false});
  const Expr columns = space.Add(
      {"band_columns",
       s.is_open ? OneTo(std::min(s.across, kMostOpenColumns)) : DivisorsOf(s.across, s.across),
       false, false});
  const Expr tiles = space.Add({"tile_columns", OneTo(widest), false, false});
  space.Require(Le(tiles, columns));
  const Expr groups = IndexConst(Vectors(s, site.machine)) / nv;
  const Expr shares = space.Add({"shares", {1, 2, 4, 8, 16}, false, false});
  space.Require(Eq(groups % shares, IndexConst(0)));
  // Shares are for what has too few bands.
  space.Require(Or(Eq(shares, IndexConst(1)),
                   Lt(IndexConst(s.down * s.across) / (rows * columns), IndexConst(kEnoughParts))));
  // One band of all maps keeps one worker busy, whoever else there is.
  const Expr parts = IndexConst(s.y[0] * s.down * s.across) / (rows * columns) * shares;
  space.Require(Or(Lt(IndexConst(1), parts), Ne(groups % 2, IndexConst(0))));
  space.Require(FitsRegisters(rows * tiles, nv, site.machine));
  // The band's input and a group's sums stay in the second-level cache.
  const int64_t lanes = site.machine.Lanes(kF32), points = s.u[2] * s.u[2];
  const int64_t tile_bytes = points * 4;
  const Expr bytes = rows * columns * IndexConst(tile_bytes) *
                     (IndexConst(CeilDiv(s.u[1], lanes) * lanes) + nv * IndexConst(lanes));
  space.Require(Or(Le(bytes, IndexConst(SecondLevelBytes(site.machine) * 3 / 4)),
                   And(Eq(rows, IndexConst(1)), Eq(columns, IndexConst(1)))));
  const auto bands = [&](int64_t count, size_t axis, const Expr& band) {
    const int64_t least = CeilDiv(s.least[axis], s.tile);
    return TripCount((IndexConst(count) + band - 1) / band, (IndexConst(least) + band - 1) / band);
  };
  AddParallelLoops(
      &space,
      {TripCount(s.y[0], s.least[0]), bands(s.down, 2, rows), bands(s.across, 3, columns), shares},
      s.is_open);
  return space;
}

std::vector<Want> Wants(const Site& site, const Point& point) {
  const Shape s = *ReadShape(site);
  const graph::Node& n = site.node();
  const int64_t lanes = site.machine.Lanes(kF32);
  // Behind the map: what pads say, and what the last tile takes more than that.
  std::vector<int64_t> after;
  for (size_t i = 2; i < 4; ++i) {
    const Expr y = site.result().dims[i], tile = IndexConst(s.tile);
    const Expr over = graph::DimSub(graph::DimMul(graph::DimCeilDiv(y, tile), tile), y);
    const int64_t most = std::min(s.tile - 1, graph::DimRange(over).max);
    after.push_back(std::max<int64_t>(0, s.pads[i] + most));
  }
  std::vector<Want> wants;
  wants.push_back(
      {n.inputs[0], FeatureMap(site.input(0).dims, lanes, {s.pads[0], s.pads[1]}, after)});
  wants.push_back(
      {n.inputs[1],
       {.order = {0, 2, 3, 1}, .blocks = {{1, lanes}, {0, ValueOf(point, "nv") * lanes}}}});
  if (n.inputs.size() > 2 && n.inputs[2] != graph::kNoValue)
    wants.push_back({n.inputs[2], {.order = {}, .blocks = {{0, lanes}}}});
  WantBlockedResults(site, lanes, &wants);
  return wants;
}

WorkDescription Work(const Site& site, const Point& point) {
  const Shape s = *ReadShape(site);
  const Machine& machine = site.machine;
  const int64_t lanes = machine.Lanes(kF32), nv = ValueOf(point, "nv");
  const int64_t rows = ValueOf(point, "band_rows"), columns = ValueOf(point, "band_columns");
  const int64_t groups = Vectors(s, machine) / nv, points = s.u[2] * s.u[2];
  const int64_t down = s.y[0] * (s.down / rows);
  const int64_t bands = down * CeilDiv(s.across, columns);
  const int64_t channels = CeilDiv(s.u[1], lanes) * lanes, maps = groups * nv * lanes;
  WorkDescription work;
  for (const auto& [wide, count] :
       {std::pair(columns, s.across / columns), std::pair(s.across % columns, int64_t{1})}) {
    AddTiles(&work, rows, wide, rows, ValueOf(point, "tile_columns"), nv,
             static_cast<double>(down * count * groups * points * channels));
  }
  // Each point of a tile and channel takes two sums of about two operations, a load and a store in
  // each transform, and its sums are put down once.
  const auto tiles = static_cast<double>(s.y[0] * s.down * s.across);
  const int64_t shares = ValueOf(point, "shares");
  const double transformed = tiles * static_cast<double>(points * (channels * shares + maps));
  work.vector_ops = EpilogueElements(site) + 6 * transformed;
  const double near = 2 * 4 * transformed;
  work.bytes[std::min<size_t>(1, machine.memory.size() - 1)] += near;
  const double weights = BytesOf(site.region, site.input(1));
  work.bytes[machine.LevelFor(static_cast<int64_t>(weights))] +=
      weights * static_cast<double>(bands);
  const double maps_bytes = BorderBytes(site.region) - weights;
  work.bytes[machine.LevelFor(static_cast<int64_t>(maps_bytes))] += maps_bytes;
  ShareOut(&work, machine, {s.y[0], s.down / rows, CeilDiv(s.across, columns), shares}, point);
  return work;
}

Operand Build(Group& group, const graph::Node& n, const Point&) {
  const OpContext op = group.Context(n);
  const int64_t lanes = group.site().machine.Lanes(kF32), tile = WinogradTile(op.in[1]);
  const WinogradStages stages = MakeWinogradStages(op, lanes, op.in[0], op.in[1]);
  group.Mark(stages.input_half.name(), BlockRole::kInputHalf);
  group.Mark(stages.input.name(), BlockRole::kInput);
  group.Mark(stages.products.name(), BlockRole::kAnchor);
  group.Mark(stages.sums.name(), BlockRole::kSums);
  group.Mark(stages.result_half.name(), BlockRole::kResultHalf);
  group.Mark(stages.result.name(), BlockRole::kResult);
  return {op.out.dtype, op.out.dims, [=](const Indices& i) {
            const Expr sum = WinogradElement(stages, tile, lanes, i);
            return op.Has(2) ? sum + op.in[2].at({i[1]}) : sum;
          }};
}

// The loops inside `at` of a block that was just put there, by the extents that they would have: ""
// where that is 1.
Names LoopsBy(Schedule& s, const std::string& block, const std::string& at,
              const std::vector<int64_t>& extents) {
  const Names inside = LoopsInside(s, block, at).spatial;
  Names out;
  size_t next = 0;
  for (int64_t extent : extents)
    out.push_back(extent == 1 || next == inside.size() ? "" : inside[next++]);
  return out;
}

// A transform along one axis: its points written out, the rest as it comes.
void ScheduleTransform(Schedule& s, const std::string& block, Scope scope, const std::string& at,
                       const std::vector<int64_t>& extents, const std::vector<size_t>& unrolled) {
  s.SetScope(WrittenBuffer(s, block), scope);
  s.ComputeAt(block, at);
  if (!s.ok()) return;
  const Names loops = LoopsBy(s, block, at, extents);
  Names outer, points;
  for (size_t i = 0; i + 1 < loops.size(); ++i) {
    const bool is_point = std::find(unrolled.begin(), unrolled.end(), i) != unrolled.end();
    if (!loops[i].empty()) (is_point ? points : outer).push_back(loops[i]);
  }
  s.Reorder(Concat({outer, points, {loops.back()}}));
  for (const std::string& l : points) s.Unroll(l);
  s.Vectorize(loops.back());
}

void ScheduleIt(Schedule& s, const Parts& parts, const Machine& machine, const Point& point) {
  const int64_t lanes = machine.Lanes(kF32), nv = ValueOf(point, "nv");
  const int64_t rows = ValueOf(point, "band_rows"), columns = ValueOf(point, "band_columns");
  const auto block = [&](BlockRole role) { return OnlyBlock(s, parts, role); };
  const std::string out = block(BlockRole::kOutput), input = block(BlockRole::kInput);
  const std::string sums = block(BlockRole::kSums), half = block(BlockRole::kInputHalf);
  const Names along = s.GetSpatialLoops(block(BlockRole::kResult));
  if (along.size() < 6) return;
  const int64_t tile = s.GetExtent(along[along.size() - 2]), points = tile + 2;
  const int64_t blocks = s.GetExtent(s.GetSpatialLoops(half)[3]);
  const std::string tile_text = std::to_string(tile);
  const Names axes = s.GetLoops(out);
  const Names c = s.SplitBy(axes[1], {"$shares", "-1", "$nv", std::to_string(lanes)});
  const Names h = s.SplitBy(axes[2], {"-1", "$band_rows", tile_text});
  const Names w = s.SplitBy(axes[3], {"-1", "$band_columns", tile_text});
  s.Reorder({axes[0], h[0], w[0], c[0], c[1], c[2], h[1], w[1], h[2], w[2], c[3]});
  ScheduleTransform(s, block(BlockRole::kResult), Scope::kRegister, w[1],
                    {1, 1, 1, 1, tile, tile, lanes}, {4, 5});
  ScheduleTransform(s, block(BlockRole::kResultHalf), Scope::kRegister, w[1],
                    {1, 1, 1, 1, tile, points, lanes}, {4, 5});
  s.Unroll(h[2]);
  s.Unroll(w[2]);
  s.Vectorize(c[3]);
  // The sums of a group, from registers.
  s.SetScope(WrittenBuffer(s, sums), Scope::kLocal);
  s.ComputeAt(sums, c[1]);
  if (!s.ok()) return;
  const Names m = LoopsBy(s, sums, c[1], {1, rows, columns, nv, points, points, lanes});
  Names across = {"", m[2]};
  if (!m[2].empty()) across = s.SplitBy(m[2], {"-1", "$tile_columns"});
  s.Reorder(Concat({{m[4], m[5], across[0], m[1], across[1], m[3], m[6]}}));
  const std::string at = across[0].empty() ? m[5] : across[0];
  ComputeInRegisters(s, block(BlockRole::kAnchor), at, "$nv", PlainKernel(machine, kF32), SIZE_MAX,
                     {});
  for (const std::string& l : {m[1], across[1], m[3]}) {
    if (!l.empty()) s.Unroll(l);
  }
  s.Vectorize(m[6]);
  // The band's input.
  ScheduleTransform(s, input, Scope::kLocal, c[0],
                    {1, points, points, blocks, rows, columns, lanes}, {1, 2});
  const Names outer = LoopsInside(s, input, c[0]).spatial;
  const auto tiles = static_cast<size_t>((blocks > 1) + (rows > 1) + (columns > 1));
  ScheduleTransform(s, half, Scope::kRegister, tiles == 0 ? c[0] : outer[tiles - 1],
                    {1, 1, 1, 1, points, points, lanes}, {4, 5});
  ParallelFirst(s, {axes[0], h[0], w[0], c[0]}, ValueOf(point, "parallel_loops"));
  ScheduleHalos(s, parts, machine);
}

constexpr OpKind kOps[] = {OpKind::kWinogradConv};

}  // namespace

extern const Algorithm kWinogradConv;
const Algorithm kWinogradConv = {"winograd_conv", kOps,       IsFor, SpaceOf, Wants, Work,
                                 Build,           ScheduleIt, 2};

}  // namespace tenon::ops
