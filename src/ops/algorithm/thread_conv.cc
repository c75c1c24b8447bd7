// Convolution where threads run together, as the product of weights and the matrix of windows
// (conv_windows.h), a tile of which is read where it lies. A step of k is within one tap where
// channels come in whole steps. Tiles are those of thread_tile.h.
#include "ops/algorithm/conv_windows.h"
#include "ops/algorithm/thread_tile.h"
#include "ops/group.h"
#include "ops/scheduling.h"

namespace tenon::ops {

using graph::OpKind;
using te::Indices;

namespace {

const DType kF32 = DType::Float(32);

bool IsFor(const Site& site) {
  if (site.machine.warp == 0 || !AreNumbers(site.input(0))) return false;
  const auto c = ReadConv(site);
  return c && c->group == 1 && c->pad_value == 0 && IsTiled(site.input(0).dtype) &&
         site.input(1).dtype == site.input(0).dtype && c->types.accumulator == kF32 &&
         c->y[0] > 0 && c->w[1] > 0;
}

TileShape ShapeOf(const ConvGeometry& c) {
  TileShape s{{c.y[0]}, c.w[0], 1, c.w[1] * c.Window()};
  for (size_t i = 2; i < c.y.size(); ++i) s.n *= c.y[i];
  if (s.m % 4 == 0) s.a_vector = 4;
  if (s.n % 4 == 0) s.out_vector = 4;
  if (s.n % 4 == 0 && ConvWindows(c).IsPointwise()) s.b_vector = 4;
  return s;
}

Space SpaceOf(const Site& site) { return TileSpace(ShapeOf(*ReadConv(site)), site.machine); }

std::vector<Want> Wants(const Site& site, const Point&) {
  StorageDesc maps_last;
  for (int i = 2; i < site.input(1).rank(); ++i) maps_last.order.push_back(i);
  maps_last.order.push_back(1);
  maps_last.order.push_back(0);
  std::vector<Want> wants = {{site.node().inputs[0], {}}, {site.node().inputs[1], maps_last}};
  WantPlainResults(site, &wants);
  return wants;
}

WorkDescription Work(const Site& site, const Point& point) {
  return TileWork(ShapeOf(*ReadConv(site)), site, point);
}

Operand Build(Group& group, const graph::Node& node, const Point& point) {
  OpContext op = group.Context(node);
  const ConvGeometry c = *ReadConv(group.site());
  const TileShape shape = ShapeOf(c);
  const ConvWindows windows(c);
  const int64_t depth = ValueOf(point, "depth");
  const bool tail = windows.Depth() % depth != 0;
  const auto within = [&](const Expr& step, const Expr& k) {
    return Lt(step * depth + k, IndexConst(windows.Depth()));
  };
  const bool ragged_rows = shape.m % TileRows(point) != 0;
  const bool ragged_columns = shape.n % TileColumns(point) != 0;
  TileOperands operands;
  operands.a_has_lead = false;
  operands.a = [&](const Indices&, const Expr& i, const Expr& step, const Expr& k) {
    Indices at = windows.Tap(step, k, depth);
    at.insert(at.begin(), i);
    Expr inside;
    if (ragged_rows) AddCondition(&inside, Lt(i, IndexConst(shape.m)));
    if (tail) AddCondition(&inside, within(step, k));
    return OrZero(inside, op.in[1].at(at));
  };
  operands.b = [&](const Indices& lead, const Expr& j, const Expr& step, const Expr& k) {
    const Indices tap = windows.Tap(step, k, depth);
    Expr inside;
    if (ragged_columns) AddCondition(&inside, Lt(j, IndexConst(shape.n)));
    if (tail) AddCondition(&inside, within(step, k));
    Indices at = {lead[0], tap[0]};
    const Indices place = windows.Place(j, tap, &inside);
    at.insert(at.end(), place.begin(), place.end());
    return OrZero(inside, op.in[0].at(at));
  };
  const auto sums = BuildTiles(group, op.name, shape, operands, point);
  const std::vector<Expr> space(op.out.dims.begin() + 2, op.out.dims.end());
  return As(op.out.dtype, {kF32, op.out.dims, [op, sums, space](const Indices& i) {
                             const Indices place(i.begin() + 2, i.end());
                             const Expr sum = sums({i[0], i[1], Linearize(place, space)});
                             return op.Has(2) ? sum + As(kF32, op.in[2]).at({i[1]}) : sum;
                           }});
}

void ScheduleIt(Schedule& s, const Parts& parts, const Machine&, const Point& point) {
  const size_t rank = s.GetLoops(OnlyBlock(s, parts, BlockRole::kOutput)).size();
  ScheduleTiles(s, parts, point, {.columns = rank - 2});
}

constexpr OpKind kOps[] = {OpKind::kConv};

}  // namespace

extern const Algorithm kThreadConv;
const Algorithm kThreadConv = {"thread_conv", kOps,  IsFor,      SpaceOf, Wants,
                               Work,          Build, ScheduleIt, 2};

}  // namespace tenon::ops
