// Convolution by units of a warp (warp_tile.h), as the product of weights and windows
// (conv_windows.h). Places next to each other are columns next to each other, so windows are read
// along columns, with zeros around the images; weights lie with their channels innermost.
#include "ops/algorithm/conv_windows.h"
#include "ops/algorithm/group_tile.h"
#include "ops/algorithm/warp_tile.h"
#include "ops/group.h"

namespace tenon::ops {

using graph::OpKind;
using te::Indices;

namespace {

const DType kF32 = DType::Float(32);

WarpShape ShapeOf(const Site& site) {
  const ConvGeometry c = *ReadConv(site);
  const ConvWindows windows(c);
  WarpShape s;
  s.type = site.input(0).dtype;
  s.lead = {c.y[0]};
  s.m = c.w[0];
  s.n = windows.Columns();
  s.k = windows.Depth();
  s.b_along_k = false;
  if (s.k % 32 == 0) {
    s.a_vector = 8;
    if (s.n % 8 == 0 && windows.IsPointwise()) s.b_vector = 8;
  }
  s.out_vector = WarpStoreVector(site, s.n);
  return s;
}

Space SpaceOf(const Site& site) { return WarpTileSpace(ShapeOf(site), site.machine); }

std::vector<Want> Wants(const Site& site, const Point&) {
  StorageDesc channels_last;
  channels_last.order.push_back(0);
  for (int i = 2; i < site.input(1).rank(); ++i) channels_last.order.push_back(i);
  channels_last.order.push_back(1);
  std::vector<Want> wants = {{site.node().inputs[0], {}}, {site.node().inputs[1], channels_last}};
  WantPlainResults(site, &wants);
  return wants;
}

WorkDescription Work(const Site& site, const Point& point) {
  const WarpShape shape = ShapeOf(site);
  WorkDescription work = WarpTileWork(shape, site, point);
  if (shape.b_vector == 1)
    work.vector_ops += ElementwiseOps(work, shape, point, WarpTileColumns(point));
  return work;
}

Operand Build(Group& group, const graph::Node& node, const Point& point) {
  OpContext op = group.Context(node);
  const ConvGeometry c = *ReadConv(group.site());
  const WarpShape shape = ShapeOf(group.site());
  const ConvWindows windows(c);
  const bool tail = WarpTileDepth(shape, point) != shape.k;
  const auto kept = [&](const Expr& k) { return tail ? Min(k, IndexConst(shape.k - 1)) : k; };
  WarpOperands operands;
  operands.a_has_lead = false;
  operands.a = [&](const Indices&, const Expr& i, const Expr& k) {
    Indices at = windows.Tap(kept(k));
    at.insert(at.begin(), Around(i, shape.m, WarpTileRows(point), 1));
    Expr inside;
    if (tail) AddCondition(&inside, Lt(k, IndexConst(shape.k)));
    return OrZero(inside, op.in[1].at(at));
  };
  operands.b = [&](const Indices& lead, const Expr& j, const Expr& k) {
    const Indices tap = windows.Tap(kept(k));
    Expr inside;
    if (tail) AddCondition(&inside, Lt(k, IndexConst(shape.k)));
    Indices at = {lead[0], tap[0]};
    const Expr column = Around(j, shape.n, WarpTileColumns(point), shape.b_vector);
    const Indices place = windows.Place(column, tap, &inside);
    at.insert(at.end(), place.begin(), place.end());
    return OrZero(inside, op.in[0].at(at));
  };
  const auto sums = BuildWarpTiles(group, op.name, shape, operands, point);
  const std::vector<Expr> space(op.out.dims.begin() + 2, op.out.dims.end());
  return As(op.out.dtype, {kF32, op.out.dims, [op, sums, space](const Indices& i) {
                             const Indices place(i.begin() + 2, i.end());
                             const Expr sum = sums({i[0], i[1], Linearize(place, space)});
                             return op.Has(2) ? sum + As(kF32, op.in[2]).at({i[1]}) : sum;
                           }});
}

void ScheduleIt(Schedule& s, const Parts& parts, const Machine& machine, const Point& point) {
  const size_t rank = s.GetLoops(OnlyBlock(s, parts, BlockRole::kOutput)).size();
  ScheduleWarpTiles(s, parts, machine, point, {.rows = 1, .columns = rank - 2});
}

constexpr OpKind kOps[] = {OpKind::kConv};

}  // namespace

extern const Algorithm kWarpConv;
const Algorithm kWarpConv = {"warp_conv", kOps,  IsWarpConv, SpaceOf, Wants,
                             Work,        Build, ScheduleIt, 2};

namespace {

bool IsForGroups(const Site& site) {
  return IsWarpConv(site) && HasGroupTiles(ShapeOf(site), site.machine);
}
Space GroupSpaceOf(const Site& site) { return GroupTileSpace(ShapeOf(site), site.machine); }

}  // namespace

extern const Algorithm kGroupConv;
const Algorithm kGroupConv = {"group_conv", kOps, IsForGroups, GroupSpaceOf, Wants, Work, Build,
                              ScheduleIt,   3};

}  // namespace tenon::ops
