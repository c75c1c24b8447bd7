// Depthwise convolution on feature maps in channel blocks: each channel has a window of its own, so
// vectors of channels run over windows by themselves, for a few positions of a row at a time.
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

const DType kF32 = DType::Float(32);

bool IsFor(const Site& site) {
  auto c = ReadConv(site);
  if (!c || !IsDirectConv(*c) || !c->Depthwise()) return false;
  const DType wide = c->types.accumulator;
  return site.machine.Lanes(wide) == site.machine.Lanes(kF32) &&
         PlainKernelFor(site.machine, site.input(0).dtype, site.input(1).dtype, wide);
}

Space SpaceOf(const Site& site) {
  const ConvGeometry c = *ReadConv(site);
  Space space;
  const Expr nv = space.Add({"nv", {1}, false, true});
  const Expr th = space.Add({"tile_height", {1}, false, false});
  const Expr tw =
      space.Add({"tile_width", OneTo(MaxWidth(c.y[3], c.is_open, site.machine)), false, false});
  space.Require(FitsRegisters(th * tw, nv, site.machine));
  AddParallelLoops(&space,
                   {TripCount(c.y[0], c.least_batch),
                    IndexConst(CeilDiv(c.w[0], site.machine.Lanes(kF32))), IndexConst(c.y[2])},
                   c.is_open);
  return space;
}

std::vector<Want> Wants(const Site& site, const Point& point) {
  const ConvGeometry c = *ReadConv(site);
  const graph::Node& n = site.node();
  const int64_t lanes = site.machine.Lanes(kF32);
  std::vector<Want> wants;
  wants.push_back({n.inputs[0], FeatureMap(site.input(0).dims, lanes, {c.pads[0], c.pads[1]},
                                           {c.pads[2], c.pads[3]}, c.pad_value)});
  const StorageDesc by_channel{.order = {}, .blocks = {{0, lanes}}};
  wants.push_back({n.inputs[1], by_channel});
  if (n.inputs.size() > 2 && n.inputs[2] != graph::kNoValue) {
    wants.push_back({n.inputs[2], by_channel});
  }
  WantBlockedResults(site, lanes, &wants);
  return wants;
}

WorkDescription Work(const Site& site, const Point& point) {
  const ConvGeometry c = *ReadConv(site);
  const int64_t groups = CeilDiv(c.w[0], site.machine.Lanes(kF32));
  WorkDescription work;
  work.type = c.types.accumulator;
  AddTiles(&work, c.y[2], c.y[3], 1, ValueOf(point, "tile_width"), 1,
           static_cast<double>(c.y[0] * groups * c.Window()));
  work.vector_ops = EpilogueElements(site);
  const double bytes = BorderBytes(site.region);
  work.bytes[site.machine.LevelFor(static_cast<int64_t>(bytes))] = bytes;
  ShareOut(&work, site.machine, {c.y[0], groups, c.y[2]}, point);
  return work;
}

Operand Build(Group& group, const graph::Node& n, const Point& point) {
  OpContext op = group.Context(n);
  const ConvGeometry c = *ReadConv(group.site());
  std::vector<Expr> shape = op.out.dims;
  shape[1] = group.output(0).Padded(1);
  const DType wide = c.types.accumulator;
  const TapRange down = TapsThatMeet(group, c, 0), across = TapsThatMeet(group, c, 1);
  return As(op.out.dtype, Read(te::Compute(op.name, shape, [&](const Indices& o) {
              te::Axis kh = te::ReduceAxis("kh", IndexConst(down.count));
              te::Axis kw = te::ReduceAxis("kw", IndexConst(across.count));
              const Expr tap_h = kh.var + IndexConst(down.first);
              const Expr tap_w = kw.var + IndexConst(across.first);
              Expr h = o[2] * c.strides[0] + tap_h * c.dilations[0] - c.pads[0];
              Expr w = o[3] * c.strides[1] + tap_w * c.dilations[1] - c.pads[1];
              Expr product = CastExpr::Make(wide, op.in[0].at({o[0], o[1], h, w})) *
                             CastExpr::Make(wide, op.in[1].at({o[1], IndexConst(0), tap_h, tap_w}));
              return te::Sum(product, {kh, kw},
                             op.Has(2) ? CastExpr::Make(wide, op.in[2].at({o[1]})) : nullptr);
            })));
}

void ScheduleIt(Schedule& s, const Parts& parts, const Machine& machine, const Point& point) {
  ScheduleBlockedTile(s, parts, machine, point, true);
}

constexpr OpKind kOps[] = {OpKind::kConv};

}  // namespace

extern const Algorithm kDepthwiseConv;
const Algorithm kDepthwiseConv = {"depthwise_conv", kOps, IsFor, SpaceOf, Wants, Work, Build,
                                  ScheduleIt};

}  // namespace tenon::ops
