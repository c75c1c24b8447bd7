// Direct convolution on feature maps in channel blocks (the scheme of oneDNN's and NeoCPU's CPU
// kernels, arXiv 1809.02697): the micro-kernel is one of a matrix product's, a tile of output
// positions by a few vectors of output channels, reduced over input channels and window. Borders in
// the input's layout take the place of guards. Few input channels (the first layer) are read from
// the plain layout by the same kernel. Maps of one axis are such without h; a stride costs nothing,
// since no vector lies along the axis.
//
//   out[n, c, h, w]  →  for n, c / (nv · lanes), h / tile_height, w / tile_width:
//                         for channels of x in blocks, window: tile[h, w, nv, lanes] += x · w
//                         store the tile, with what follows the convolution
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

std::optional<MicroKernel> FindKernel(const Site& site, const ConvGeometry& c) {
  return VectorKernelFor(site.machine, site.input(0).dtype, site.input(1).dtype,
                         c.types.accumulator);
}

// All feature maps have one size of blocks, so a kernel has as many lanes.
bool IsFor(const Site& site) {
  auto c = ReadConv(site);
  if (!c || c->rank() > 2 || c->group > 1 || c->w[0] < 2) return false;
  const auto kernel = FindKernel(site, *c);
  const int64_t lanes = site.machine.Lanes(kF32);
  return kernel && kernel->lanes() == lanes && lanes % kernel->depth() == 0 &&
         kernel->depth() == kernel->group;
}

// Maps of open sizes whose window is one position are rows of a product: where the positions of a
// row of the map end, the tile goes on with those of the next. A position's place in the result is
// a quotient and a remainder then, once per tile; few channels would not outweigh it.
bool AreTogether(const ConvGeometry& c, const MicroKernel& kernel) {
  constexpr int64_t kEnoughChannels = 64;
  const auto all = [](const std::vector<int64_t>& list, int64_t value) {
    return std::all_of(list.begin(), list.end(), [&](int64_t i) { return i == value; });
  };
  return c.is_open && c.rank() == 2 && c.Window() == 1 && all(c.strides, 1) && all(c.pads, 0) &&
         kernel.IsPlain() && c.x[1] >= kEnoughChannels;
}

// The positions of a map as tiles see them.
struct Positions {
  int64_t height, width;
  bool in_rows;  // of the map; else one behind the other
};

Positions PositionsOf(const Site& site, const ConvGeometry& c) {
  const int64_t height = c.rank() > 1 ? c.y[2] : 1, width = c.y.back();
  if (AreTogether(c, *FindKernel(site, c))) return {1, height * width, false};
  return {height, width, c.rank() > 1};
}

// Wide rows of the output are cut along the row alone, and so are those that may be.
int64_t MaxHeight(const ConvGeometry& c, const Positions& map) {
  return c.is_open || map.width >= 14 ? 1 : std::min<int64_t>(map.height, 4);
}

Space SpaceOf(const Site& site) {
  const ConvGeometry c = *ReadConv(site);
  const int64_t lanes = site.machine.Lanes(kF32);
  const int64_t vectors = CeilDiv(c.w[0], lanes);
  const Positions map = PositionsOf(site, c);
  Space space;
  // A dot product needs neighbours.
  std::vector<int64_t> blocks;
  if (FindKernel(site, c)->depth() == 1) blocks.push_back(1);
  if (lanes > 1) blocks.push_back(ChannelBlock(site.input(0), site.machine));
  space.Add({"input_block", blocks, true, false});
  const Expr nv = space.Add({"nv", DivisorsOf(vectors, 8), true, true});
  const Expr th = space.Add({"tile_height", OneTo(MaxHeight(c, map)), false, false});
  const Expr tw =
      space.Add({"tile_width", OneTo(MaxWidth(map.width, c.is_open, site.machine)), false, false});
  space.Require(FitsRegisters(th * tw, nv, site.machine));
  const Expr& tile = map.in_rows ? th : tw;
  AddParallelLoops(&space,
                   {TripCount(c.y[0], c.least_batch), IndexConst(vectors) / nv,
                    (IndexConst(map.in_rows ? map.height : map.width) + tile - 1) / tile},
                   c.is_open);
  return space;
}

std::vector<Want> Wants(const Site& site, const Point& point) {
  const ConvGeometry c = *ReadConv(site);
  const graph::Node& n = site.node();
  const int64_t lanes = site.machine.Lanes(kF32), block = ValueOf(point, "input_block");
  std::vector<Want> wants;
  const auto ends = c.pads.begin() + static_cast<long>(c.rank());
  wants.push_back({n.inputs[0], FeatureMap(site.input(0).dims, block, {c.pads.begin(), ends},
                                           {ends, c.pads.end()}, c.pad_value)});
  StorageDesc weights;
  if (block > 1) weights.blocks.push_back({1, block});
  weights.blocks.push_back({0, ValueOf(point, "nv") * lanes});
  if (const int64_t group = FindKernel(site, c)->group; group > 1)
    weights.blocks.push_back({1, group});
  wants.push_back({n.inputs[1], weights});
  if (n.inputs.size() > 2 && n.inputs[2] != graph::kNoValue) {
    wants.push_back({n.inputs[2], {.order = {}, .blocks = {{0, lanes}}}});
  }
  WantBlockedResults(site, lanes, &wants);
  return wants;
}

WorkDescription Work(const Site& site, const Point& point) {
  const ConvGeometry c = *ReadConv(site);
  const int64_t lanes = site.machine.Lanes(kF32), block = ValueOf(point, "input_block");
  const int64_t nv = ValueOf(point, "nv"), th = ValueOf(point, "tile_height");
  const int64_t groups = CeilDiv(c.w[0], lanes) / nv;
  const MicroKernel kernel = *FindKernel(site, c);
  const int64_t steps = CeilDiv(c.x[1], block) * (block / kernel.depth());
  WorkDescription work;
  work.type = c.types.accumulator;
  work.unit = kernel.unit;
  const int64_t tw = ValueOf(point, "tile_width");
  const Positions map = PositionsOf(site, c);
  AddTiles(&work, map.height, map.width, th, tw, nv,
           static_cast<double>(c.y[0] * groups * steps * c.Window()));
  work.vector_ops = EpilogueElements(site);
  const double bytes = BorderBytes(site.region);
  work.bytes[site.machine.LevelFor(static_cast<int64_t>(bytes))] = bytes;
  const int64_t tiles = map.in_rows ? CeilDiv(map.height, th) : CeilDiv(map.width, tw);
  ShareOut(&work, site.machine, {c.y[0], groups, tiles}, point);
  return work;
}

Operand Build(Group& group, const graph::Node& n, const Point& point) {
  OpContext op = group.Context(n);
  const ConvGeometry c = *ReadConv(group.site());
  const int64_t block = ValueOf(point, "input_block");
  std::vector<Expr> shape = op.out.dims;
  shape[1] = group.output(0).Padded(1);
  const MicroKernel kernel = *FindKernel(group.site(), c);
  group.Mark(op.name, BlockRole::kAnchor, kernel.unit.row);
  const DType wide = c.types.accumulator;
  // The sums that an operation of the table takes lie side by side: [n, h, w, c].
  const bool channels_last = !kernel.IsPlain(), together = AreTogether(c, kernel);
  const Expr width = shape.back();
  auto in_sums = [channels_last](Indices i) {
    if (channels_last) std::rotate(i.begin() + 1, i.begin() + 2, i.end());
    return i;
  };
  const Indices of_sums = together ? Indices{shape[0], shape[1], shape[2] * width} : in_sums(shape);
  std::vector<TapRange> taps;
  for (size_t i = 0; i < c.rank(); ++i) taps.push_back(TapsThatMeet(group, c, i));
  const te::Tensor sums = te::Compute(op.name, of_sums, [&](Indices o) {
    if (channels_last) std::rotate(o.begin() + 1, o.end() - 1, o.end());
    if (together) o = {o[0], o[1], o[2] / width, o[2] % width};
    std::vector<te::Axis> axes = {te::ReduceAxis("cb", IndexConst(CeilDiv(c.x[1], block)))};
    const te::Axis ci = te::ReduceAxis("ci", IndexConst(block));
    const Expr channel = Expr(axes[0].var) * block + ci.var;
    Indices x = {o[0], channel}, w = {o[1], channel};
    for (size_t i = 0; i < c.rank(); ++i) {
      axes.push_back(te::ReduceAxis(i + 1 < c.rank() ? "kh" : "kw", IndexConst(taps[i].count)));
      const Expr tap = axes.back().var + IndexConst(taps[i].first);
      x.push_back(o[i + 2] * c.strides[i] + tap * c.dilations[i] - c.pads[i]);
      w.push_back(tap);
    }
    axes.push_back(ci);
    const Expr product =
        CastExpr::Make(wide, op.in[0].at(x)) * CastExpr::Make(wide, op.in[1].at(w));
    return te::Sum(product, axes, op.Has(2) ? CastExpr::Make(wide, op.in[2].at({o[1]})) : nullptr);
  });
  return As(op.out.dtype,
            {wide, shape, [sums, in_sums, together, width](const Indices& i) {
               return sums.At(together ? Indices{i[0], i[1], i[2] * width + i[3]} : in_sums(i));
             }});
}

void ScheduleIt(Schedule& s, const Parts& parts, const Machine& machine, const Point& point) {
  ScheduleBlockedTile(s, parts, machine, point, false);
}

constexpr OpKind kOps[] = {OpKind::kConv};

}  // namespace

extern const Algorithm kDirectConv;
const Algorithm kDirectConv = {"direct_conv", kOps,  IsFor,      SpaceOf, Wants,
                               Work,          Build, ScheduleIt, 7};

}  // namespace tenon::ops
