// Convolution by a unit that multiplies whole tiles: sixteen neighbouring positions of a map by
// sixteen output channels, over a step's input channels of one tap. A band of rows of the input is
// packed for the worker that needs it, so that the channels of a step lie together and nothing is
// guarded: what is outside of the map is written there. In the packed rows a position of the result
// and each of its taps are a constant distance apart, whatever row they are on, so tiles go on from
// one row to the next; the positions between the end of a row and the beginning of the next are
// computed for nothing. A stride deals positions out to as many maps, in which all steps are of
// one. Maps of one axis have rows of one position.
//
//   out[n, c, h, w]  →  for n, bands of h, shares of c:
//                         rows[channels / 32, phases, band · pitch, 32] = the band's input
//                         for c / (nv · 16) of the share:
//                           for band · pitch / (tile_rows · 16):
//                             for channels / 32, taps: bring tile_rows tiles of rows and nv of w
//                                                      sums[tile_rows, nv] += a · b, tile by tile
//                             sums to memory
//                           from there with what follows the convolution to out
#include <algorithm>

#include "intrin/tile_intrinsic.h"
#include "ops/algorithm/matrix_tiles.h"
#include "ops/conv_geometry.h"
#include "ops/tiling.h"
#include "support/check.h"

namespace tenon::ops {

using graph::OpKind;
using te::Indices;

namespace {

constexpr int64_t kMostTilesAlong = 4;
constexpr int64_t kMostBandRows = 32;
constexpr int64_t kMostColumnShares = 16;

// One axis of space as packed rows have it: `phases` maps, in which a tap is a whole number of
// places away.
struct PackedAxis {
  int64_t in = 1, out = 1, taps = 1, stride = 1, dilation = 1, pad = 0;

  int64_t Phases() const { return taps == 1 ? 1 : std::min(stride, (taps - 1) * dilation + 1); }
  int64_t Reach() const { return (taps - 1) * dilation / stride; }
  Expr PhaseOf(const Expr& tap) const { return tap * dilation % stride; }
  Expr OffsetOf(const Expr& tap) const { return tap * dilation / stride; }
};

// A convolution as tiles see it.
struct TiledConv {
  ConvGeometry c;
  MicroKernel kernel;
  PackedAxis h, w;
  int64_t channels = 0;  // of a step
  int64_t taps = 1;      // of a step, along a row: of few channels there are several
  int64_t pitch = 1;     // of packed rows

  bool HasFewChannels() const { return taps > 1; }
  int64_t Steps() const { return CeilDiv(c.x[1], channels); }
  // Maps side by side: by phase, or by group of taps.
  int64_t MapsAcross() const { return HasFewChannels() ? CeilDiv(w.taps, taps) : w.Phases(); }
  int64_t StepsAcross() const { return HasFewChannels() ? MapsAcross() : w.taps; }
  int64_t ReachAcross() const { return HasFewChannels() ? 0 : w.Reach(); }
  int64_t Turns() const { return Steps() * h.taps * StepsAcross(); }
  int64_t Columns() const { return CeilDiv(c.w[0], kernel.lanes()); }
  // Of a band, from its first to its last.
  int64_t Positions(int64_t band) const { return (band - 1) * pitch + w.out; }
  int64_t Groups(int64_t band, int64_t tile_rows) const {
    return CeilDiv(Positions(band), tile_rows * kernel.rows());
  }
  // Rows of one phase of a band, and what the last tile reads beyond them.
  int64_t PackedRows(int64_t band, int64_t tile_rows) const {
    const int64_t last = Groups(band, tile_rows) * tile_rows * kernel.rows() - 1;
    return CeilDiv(last + h.Reach() * pitch + ReachAcross() + 1, pitch);
  }
  // Bytes of one place in all maps.
  int64_t PlaceBytes() const {
    return Steps() * h.Phases() * MapsAcross() * kernel.depth() * kernel.unit.a.Bytes();
  }
};

std::optional<TiledConv> ReadTiledConv(const Site& site) {
  const auto c = ReadConv(site);
  if (!c || c->rank() > 2 || c->group > 1 || c->is_open || c->w[0] < 2) return std::nullopt;
  const auto kernel =
      TileKernelFor(site.machine, site.input(0).dtype, site.input(1).dtype, c->types.accumulator);
  if (!kernel) return std::nullopt;
  const auto axis = [&](size_t i) {
    return PackedAxis{c->x[i + 2],   c->y[i + 2],     c->w[i + 2],
                      c->strides[i], c->dilations[i], c->pads[i]};
  };
  TiledConv t{*c, *kernel, axis(0), c->rank() > 1 ? axis(1) : PackedAxis(), kernel->depth()};
  // Of few channels most of a step would be zeros: it takes the taps of a row together, which are
  // neighbours in a row-major map.
  if (c->x[1] < site.machine.Lanes(DType::Float(32))) {
    if (c->rank() < 2) return std::nullopt;
    t.channels = 1;
    t.taps = kernel->depth();
  }
  t.pitch = t.w.out + t.ReachAcross();
  if (t.h.out < 1 || t.w.out < 1) return std::nullopt;
  return t;
}

bool IsFor(const Site& site) { return ReadTiledConv(site).has_value(); }

Space SpaceOf(const Site& site) {
  const TiledConv t = *ReadTiledConv(site);
  const int64_t rows = t.kernel.rows();
  Space space;
  const Expr nv = space.Add({"nv", DivisorsOf(t.Columns(), kMostTilesAlong), true, true});
  const int64_t row_tiles = CeilDiv(t.Positions(t.h.out), rows);
  const Expr tile_rows =
      space.Add({"tile_rows", OneTo(std::min(row_tiles, kMostTilesAlong)), false, true});
  space.Require(Le(tile_rows * nv + tile_rows + nv, IndexConst(kNumTiles)));
  const Expr band = space.Add({"band", OneTo(std::min(t.h.out, kMostBandRows)), false, false});
  const auto ceil_div = [](const Expr& a, const Expr& b) { return (a + b - 1) / b; };
  const Expr bands = ceil_div(IndexConst(t.h.out), band);
  // Bands of near-equal size: no larger than as many of them need.
  space.Require(Eq(band, ceil_div(IndexConst(t.h.out), bands)));
  const Expr tile = tile_rows * IndexConst(rows);
  const Expr positions = (band - 1) * t.pitch + t.w.out;
  space.Require(Le(tile, positions + rows - 1));
  // What is packed stays in the second-level cache.
  const Expr last = ceil_div(positions, tile) * tile;
  const Expr bytes = (last + IndexConst(t.h.Reach() * t.pitch + t.ReachAcross() + t.pitch)) *
                     IndexConst(t.PlaceBytes());
  space.Require(
      Or(Eq(band, IndexConst(1)), Le(bytes, IndexConst(SecondLevelBytes(site.machine) / 2))));
  const Expr shares =
      space.Add({"shares", DivisorsOf(kMostColumnShares, kMostColumnShares), false, false});
  const Expr panels = IndexConst(t.Columns()) / nv;
  space.Require(Eq(panels % shares, IndexConst(0)));
  // One band of all maps keeps one worker busy, whoever else there is.
  const Expr parts = IndexConst(std::max<int64_t>(t.c.y[0], 1)) * bands * shares;
  space.Require(Or(Lt(IndexConst(1), parts), Ne(panels % 2, IndexConst(0))));
  space.Add({"pitch", {t.pitch}, false, true});
  AddParallelLoops(&space, {TripCount(t.c.y[0], t.c.least_batch), bands, shares});
  return space;
}

// Where a step has several taps, k runs over these.
StorageDesc Panels(const TiledConv& t, int64_t nv) {
  StorageDesc d = t.kernel.Panels(true, nv);
  if (!t.HasFewChannels()) return d;
  for (graph::Blocking& b : d.blocks) {
    if (b.axis == 1) b.axis = 3;
  }
  return d;
}

std::vector<Want> Wants(const Site& site, const Point& point) {
  const TiledConv t = *ReadTiledConv(site);
  const graph::Node& n = site.node();
  const int64_t lanes = site.machine.Lanes(DType::Float(32));
  const int64_t block = t.HasFewChannels() ? t.channels : ChannelBlock(site.input(0), site.machine);
  std::vector<Want> wants = {{n.inputs[0], FeatureMap(site.input(0).dims, block)},
                             {n.inputs[1], Panels(t, ValueOf(point, "nv"))}};
  if (n.inputs.size() > 2 && n.inputs[2] != graph::kNoValue)
    wants.push_back({n.inputs[2], {.order = {}, .blocks = {{0, lanes}}}});
  WantBlockedResults(site, lanes, &wants);
  return wants;
}

WorkDescription Work(const Site& site, const Point& point) {
  const TiledConv t = *ReadTiledConv(site);
  const Machine& machine = site.machine;
  const int64_t nv = ValueOf(point, "nv"), rows = ValueOf(point, "tile_rows");
  const int64_t band = ValueOf(point, "band"), shares = ValueOf(point, "shares");
  const int64_t bands = CeilDiv(t.h.out, band), groups = t.Groups(band, rows);
  const int64_t panels = t.Columns() / nv, turns = t.Turns();
  const int64_t bytes = t.kernel.unit.a.Bytes(), step = t.kernel.depth() * bytes;
  const auto level = [&](int64_t size) {
    return std::min(std::max<size_t>(machine.LevelFor(size), 1), machine.memory.size() - 1);
  };
  WorkDescription work;
  work.type = t.c.types.accumulator;
  work.unit = t.kernel.unit;
  // The first tiles of a band to meet a panel wait for it; the others find it nearer.
  const double weights = BytesOf(site.region, site.input(1));
  const auto all_bands = static_cast<double>(t.c.y[0] * bands);
  const auto per_band = static_cast<double>(panels * turns);
  work.AddTileSteps(
      rows, nv, all_bands * per_band,
      {level(static_cast<int64_t>(weights)), static_cast<double>(nv * t.kernel.lanes() * step)});
  work.AddTileSteps(rows, nv, all_bands * per_band * static_cast<double>(groups - 1));
  const int64_t panel = nv * t.kernel.lanes() * step * turns;
  const int64_t packed = t.PackedRows(band, rows) * t.pitch * t.PlaceBytes();
  work.bytes[level((panel + packed) * 2 / 3)] +=
      all_bands * per_band * static_cast<double>(groups * (nv + rows) * t.kernel.rows() * step);
  work.bytes[machine.LevelFor(static_cast<int64_t>(weights))] += weights * (all_bands - 1);
  // An element is packed by about two operations; the sums go to memory and come back.
  constexpr double kToPack = 2;
  const int64_t elements = packed / bytes;
  const int64_t sums = groups * rows * t.kernel.rows() * nv * t.kernel.lanes();
  const double all_sums = all_bands * static_cast<double>(panels * sums);
  work.vector_ops =
      EpilogueElements(site) + 2 * all_sums + kToPack * all_bands * static_cast<double>(elements);
  work.bytes[std::min(machine.LevelFor(sums * 4), machine.memory.size() - 1)] += 8 * all_sums;
  const double border = BorderBytes(site.region);
  work.bytes[machine.LevelFor(static_cast<int64_t>(border))] += border;
  ShareOut(&work, machine, {t.c.y[0], bands, shares}, point);
  work.barriers = shares > 1 ? 1 : 0;
  return work;
}

// The band's input: of each step's channels, a map for each phase.
te::Tensor PackRows(Group& group, const OpContext& op, const TiledConv& t, const Expr& bands,
                    const Point& point) {
  const int64_t band = ValueOf(point, "band"), depth = t.kernel.depth();
  const int64_t packed = t.PackedRows(band, ValueOf(point, "tile_rows")) * t.pitch;
  const auto within = [](const Expr& i, int64_t size) {
    return And(Le(IndexConst(0), i), Lt(i, IndexConst(size)));
  };
  const auto element = [&](const Indices& i) -> te::Body {
    const Expr &step = i[2], &place = i[5], &k = i[6];
    const Expr h = (i[1] * band + place / t.pitch) * t.h.stride + i[3] - t.h.pad;
    Expr across = i[4], channel = step * depth + k, tap;
    if (t.HasFewChannels()) {
      channel = step;
      tap = i[4] * t.taps + k;
      across = tap * t.w.dilation;
    }
    const Expr w = place % t.pitch * t.w.stride + across - t.w.pad;
    Expr inside = And(within(h, t.h.in), within(w, t.w.in));
    if (t.c.x[1] % t.channels != 0) inside = And(inside, Lt(channel, IndexConst(t.c.x[1])));
    if (tap && t.c.w[3] % t.taps != 0) inside = And(inside, Lt(tap, IndexConst(t.c.w[3])));
    Indices at = {i[0], channel, h};
    if (t.c.rank() > 1) at.push_back(w);
    return Select::Make(inside, op.in[0].at(at), MakeConst(op.in[0].dtype, t.c.pad_value));
  };
  return te::Compute(group.Mark(op.name + "_rows", BlockRole::kPack),
                     {op.out.dims[0], bands, IndexConst(t.Steps()), IndexConst(t.h.Phases()),
                      IndexConst(t.MapsAcross()), IndexConst(packed), IndexConst(depth)},
                     element);
}

Operand Build(Group& group, const graph::Node& n, const Point& point) {
  const OpContext op = group.Context(n);
  const TiledConv t = *ReadTiledConv(group.site());
  const int64_t band = ValueOf(point, "band"), nv = ValueOf(point, "nv");
  const int64_t rows = t.kernel.rows(), lanes = t.kernel.lanes(), depth = t.kernel.depth();
  TiledProduct p;
  p.lead = {op.out.dims[0], IndexConst(CeilDiv(t.h.out, band))};
  p.tile_rows = ValueOf(point, "tile_rows");
  p.groups = IndexConst(t.Groups(band, p.tile_rows));
  p.columns = IndexConst(CeilDiv(t.Columns(), nv) * nv);
  p.steps = {IndexConst(t.Steps()), IndexConst(t.h.taps)};
  if (t.c.rank() > 1) p.steps.push_back(IndexConst(t.StepsAcross()));
  p.wide = t.c.types.accumulator;
  const te::Tensor packed = PackRows(group, op, t, p.lead[1], point);
  p.a = [&](Indices at, const Expr& rows_of, const Expr& tile, const Indices& step, const Expr& row,
            const Expr& k) {
    const Expr position = (rows_of * p.tile_rows + tile) * rows + row;
    const Expr across = step.size() > 2 ? step[2] : IndexConst(0);
    Expr place = position + t.h.OffsetOf(step[1]) * t.pitch, map = across;
    if (!t.HasFewChannels()) {
      place = place + t.w.OffsetOf(across);
      map = t.w.PhaseOf(across);
    }
    at.insert(at.end(), {step[0], t.h.PhaseOf(step[1]), map, place, k});
    return packed.At(at);
  };
  p.b = [&](const Indices&, const Expr& tile, const Indices& step, const Expr& k,
            const Expr& lane) {
    Indices at = {tile * lanes + lane, step[0] * depth + k, step[1]};
    if (step.size() > 2) at.push_back(step[2]);
    if (t.HasFewChannels()) {
      at[1] = step[0];
      at[3] = step[2] * t.taps + k;
    }
    return op.in[1].at(at);
  };
  const Operand sums = BuildTiles(group, op, t.kernel, p);
  return As(op.out.dtype,
            {p.wide, op.out.dims, [=, pitch = t.pitch](const Indices& i) {
               Expr position = i[2] % band * pitch;
               if (i.size() > 3) position = position + i[3];
               const Expr sum = sums.at({i[0], i[2] / band, position, i[1]});
               return op.Has(2) ? sum + CastExpr::Make(sum->dtype, op.in[2].at({i[1]})) : sum;
             }});
}

// Under the loop `at`, or all bands by all workers ("").
void SchedulePack(Schedule& s, const Parts& parts, const Machine& machine, const Point& point,
                  const std::string& at) {
  const std::string pack = OnlyBlock(s, parts, BlockRole::kPack);
  if (!at.empty()) {
    s.SetScope(WrittenBuffer(s, pack), Scope::kLocal);
    s.ComputeAt(pack, at);
  }
  if (!s.ok()) return;
  const Names loops = LoopsInside(s, pack, at).spatial;
  TN_CHECK(loops.size() >= 2);
  Names rows = {loops[loops.size() - 2]};
  if (ValueOf(point, "pitch") > 1) rows = s.SplitBy(rows[0], {"-1", "$pitch"});
  const Names k = s.SplitBy(loops.back(), {"-1", std::to_string(machine.Lanes(DType::Float(32)))});
  s.Unroll(k[0]);
  s.Vectorize(k[1]);
  if (at.empty() && ValueOf(point, "parallel_loops") > 0)
    ParallelOuter(s, Concat({{loops.begin(), loops.end() - 2}, {rows[0]}}));
}

void ScheduleIt(Schedule& s, const Parts& parts, const Machine& machine, const Point& point) {
  const std::string sums = OnlyBlock(s, parts, BlockRole::kAnchor);
  const Names of_sums = s.GetSpatialLoops(sums);  // …, groups, tile_rows, columns, rows, lanes
  if (!s.ok() || of_sums.size() < 5) return;
  const int64_t groups = s.GetExtent(of_sums[of_sums.size() - 5]);
  const MicroKernel kernel = KernelOf(machine, PartOf(parts, sums).row, WrittenType(s, sums));
  const Names axes = s.GetLoops(OnlyBlock(s, parts, BlockRole::kOutput));
  if (!s.ok() || axes.size() < 3) return;
  const Names c = s.SplitBy(axes[1], {"$shares", "-1", "$nv", std::to_string(kernel.lanes())});
  const Names h = s.SplitBy(axes[2], {"-1", "$band"});
  const Names w(axes.begin() + 3, axes.end());
  const Names outer = {axes[0], h[0], c[0]};
  s.Reorder(Concat({outer, {c[1], h[1]}, w, {c[2], c[3]}}));
  s.Unroll(c[2]);
  s.Vectorize(c[3]);
  ScheduleTiles(s, parts, machine, sums, c[1], 0, c[1], groups);
  SchedulePack(s, parts, machine, point, ValueOf(point, "shares") > 1 ? "" : c[0]);
  ParallelFirst(s, outer, ValueOf(point, "parallel_loops"));
  ScheduleHalos(s, parts, machine);
}

constexpr OpKind kOps[] = {OpKind::kConv};

}  // namespace

extern const Algorithm kTileConv;
const Algorithm kTileConv = {"tile_conv", kOps, IsFor, SpaceOf, Wants, Work, Build, ScheduleIt, 3};

}  // namespace tenon::ops
