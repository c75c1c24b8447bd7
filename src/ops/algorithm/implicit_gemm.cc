// Convolution as the product of weights [maps, channels · window] and the matrix of windows, which
// is never made: its elements are read where they lie (cuDNN's implicit GEMM, arXiv 1410.0759, on
// feature maps in plain layout). A tile is a few maps by vectors along the innermost axis of space;
// the windows of a tile's width stay in the first-level cache while all maps go by. For
// convolutions that have no direct form in channel blocks: one-, three-dimensional and grouped
// ones.
#include <algorithm>

#include "arith/analyzer.h"
#include "ops/algorithm/tile_schedule.h"
#include "ops/conv_geometry.h"
#include "ops/fusing.h"
#include "ops/group.h"
#include "ops/tiling.h"

namespace tenon::ops {

using graph::OpKind;
using te::Indices;

namespace {

const DType kF32 = DType::Float(32);
constexpr int64_t kMaxMaps = 8;

// Vectors along an axis of one element would have nothing to lie along.
bool IsFor(const Site& site) {
  auto c = ReadConv(site);
  return c && c->pad_value == 0 && (c->is_open || c->y.back() > 1) &&
         ComputesInF32(site.region, site.node()) && !IsDirectConv(*c) && site.machine.warp == 0;
}

// Vectors along the innermost axis; a ragged last one is stored by mask.
int64_t Vectors(const ConvGeometry& c, const Machine& machine) {
  const int64_t vectors = CeilDiv(c.y.back(), machine.Lanes(kF32));
  return vectors > 4 ? CeilDiv(vectors, 4) * 4 : vectors;
}

// Positions of a tile along the innermost axis of space, which is computed in whole tiles: what
// lies beyond its end, and is not stored, costs no guards.
int64_t TileWidth(const Site& site, const Point& point) {
  return ValueOf(point, "nv") * site.machine.Lanes(kF32);
}

Space SpaceOf(const Site& site) {
  const ConvGeometry c = *ReadConv(site);
  const int64_t maps = c.maps_per_group();
  Space space;
  const Expr nv = space.Add({"nv", DivisorsOf(Vectors(c, site.machine), 8), true, true});
  // Along a tile's maps one group's windows serve: a divisor of its maps.
  const int64_t most = std::min(maps, kMaxMaps);
  const Expr rows =
      space.Add({"maps", c.group > 1 ? DivisorsOf(maps, most) : OneTo(most), true, false});
  space.Require(FitsRegisters(rows, nv, site.machine));
  std::vector<TripCount> outer = {{c.y[0], c.least_batch}};
  for (size_t i = 2; i + 1 < c.y.size(); ++i) outer.emplace_back(IndexConst(c.y[i]));
  const Expr tile = nv * IndexConst(site.machine.Lanes(kF32));
  outer.push_back((IndexConst(c.y.back() - 1) + tile) / tile);
  outer.push_back((IndexConst(c.y[1] - 1) + rows) / rows);
  AddParallelLoops(&space, outer, c.is_open);
  return space;
}

std::vector<Want> Wants(const Site& site, const Point& point) {
  const ConvGeometry c = *ReadConv(site);
  std::vector<int64_t> before, after;
  for (size_t i = 0; i < c.rank(); ++i) {
    const int64_t tile = i + 1 == c.rank() ? TileWidth(site, point) : 1;
    before.push_back(c.pads[i]);
    if (!AsInt(site.input(0).dims[i + 2])) {
      // Beyond the last output, whose window ends in the padding, all but one of a tile.
      after.push_back(c.pads[c.rank() + i] + (tile - 1) * c.strides[i]);
      continue;
    }
    const int64_t outputs = CeilDiv(c.y[i + 2], tile) * tile;
    const int64_t last = (outputs - 1) * c.strides[i] + (c.w[i + 2] - 1) * c.dilations[i];
    after.push_back(std::max<int64_t>(0, last - c.pads[i] - c.x[i + 2] + 1));
  }
  std::vector<Want> wants;
  wants.push_back({site.node().inputs[0], FeatureMap(site.input(0).dims, 1, before, after)});
  StorageDesc weights;
  if (const int64_t maps = ValueOf(point, "maps"); maps > 1) weights.blocks = {{0, maps}};
  wants.push_back({site.node().inputs[1], weights});
  WantPlainResults(site, &wants);
  return wants;
}

WorkDescription Work(const Site& site, const Point& point) {
  const ConvGeometry c = *ReadConv(site);
  const int64_t nv = ValueOf(point, "nv"), rows = ValueOf(point, "maps");
  std::vector<int64_t> outer = {c.y[0]};
  int64_t planes = c.y[0];
  for (size_t i = 2; i + 1 < c.y.size(); ++i) {
    outer.push_back(c.y[i]);
    planes *= c.y[i];
  }
  outer.push_back(CeilDiv(c.y.back(), nv * site.machine.Lanes(kF32)));
  outer.push_back(CeilDiv(c.y[1], rows));
  WorkDescription work;
  // Prices tiles of the first maps as if all were such: what is left over differs little.
  const int64_t maps = std::min(c.maps_per_group(), kMaxMaps);
  const double groups = static_cast<double>(c.y[1]) / static_cast<double>(maps);
  const auto columns = static_cast<double>(Vectors(c, site.machine) / nv);
  AddTiles(&work, 1, maps, 1, rows, nv,
           static_cast<double>(planes * c.w[1] * c.Window()) * columns * groups);
  work.vector_ops = EpilogueElements(site);
  if (c.strides.back() > 1) {  // the elements of a vector come one by one
    constexpr double kToGather = 2;
    work.scalar_ops = kToGather * static_cast<double>(planes * c.w[1] * c.Window()) * groups *
                      static_cast<double>(CeilDiv(maps, rows)) * static_cast<double>(c.y.back());
  }
  const double bytes = BorderBytes(site.region);
  work.bytes[site.machine.LevelFor(static_cast<int64_t>(bytes))] = bytes;
  ShareOut(&work, site.machine, outer, point);
  return work;
}

Operand Build(Group& group, const graph::Node& node, const Point& point) {
  OpContext op = group.Context(node);
  const ConvGeometry c = *ReadConv(group.site());
  std::vector<Expr> shape = op.out.dims;
  const int64_t tile = TileWidth(group.site(), point);
  shape.back() = Simplify(CeilDiv(shape.back(), IndexConst(tile)) * tile);
  return Read(te::Compute(op.name, shape, [&](const Indices& o) {
    std::vector<te::Axis> axes = {te::ReduceAxis("ci", IndexConst(c.w[1]))};
    Expr channel = axes[0].var;
    if (c.group > 1) channel = o[1] / c.maps_per_group() * c.w[1] + channel;
    Indices x = {o[0], channel}, w = {o[1], axes[0].var};
    for (size_t i = 0; i < c.rank(); ++i) {
      axes.push_back(te::ReduceAxis("k" + std::to_string(i), IndexConst(c.w[i + 2])));
      Expr tap = axes.back().var;
      x.push_back(o[i + 2] * c.strides[i] + tap * c.dilations[i] - c.pads[i]);
      w.push_back(tap);
    }
    return te::Sum(op.in[0].at(x) * op.in[1].at(w), axes,
                   op.Has(2) ? op.in[2].at({o[1]}) : nullptr);
  }));
}

// out[n, m, …, w]: maps by vectors along w.
void ScheduleIt(Schedule& s, const Parts& parts, const Machine& machine, const Point& point) {
  Names axes = s.GetLoops(OnlyBlock(s, parts, BlockRole::kOutput));
  Names m = s.SplitBy(axes[1], {"-1", "$maps"});
  Names w = s.SplitBy(axes.back(), {"-1", "$nv", std::to_string(machine.Lanes(kF32))});
  Names space(axes.begin() + 2, axes.end() - 1);
  FillTile(s, parts, machine, point, Concat({{axes[0]}, space, {w[0], m[0]}}), {m[1], w[1], w[2]});
}

constexpr OpKind kOps[] = {OpKind::kConv};

}  // namespace

extern const Algorithm kImplicitGemm;
const Algorithm kImplicitGemm = {"implicit_gemm", kOps, IsFor, SpaceOf,
                                 Wants,           Work, Build, ScheduleIt};

}  // namespace tenon::ops
