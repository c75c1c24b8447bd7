// Convolution of images whose channels lie together, by units of a warp (warp_tile.h): the product
// of windows, which are rows, and weights, of which each map is a column. A piece of a window is
// neighbouring channels of one place, so it comes by a copy that nobody waits for, and one that
// meets the border comes as zeros; the result is written as its readers want it, channels together.
// Windows and weights that are no whole pieces (the three colours of a first layer) are computed
// element by element.
#include "graph/dims.h"
#include "ops/algorithm/conv_windows.h"
#include "ops/algorithm/group_tile.h"
#include "ops/algorithm/warp_tile.h"
#include "ops/group.h"
#include "ops/tiling.h"

namespace tenon::ops {

using graph::OpKind;
using te::Indices;

namespace {

const DType kF32 = DType::Float(32);
constexpr int64_t kPiece = 8;

// The result's order is the image's, so it has the image's axes.
bool IsFor(const Site& site) {
  if (!IsWarpConv(site) || site.input(0).rank() < 3) return false;
  const std::vector<Expr>& dims = site.region.type(site.region.outputs[0]).dims;
  const std::vector<Expr>& own = site.result().dims;
  return std::equal(dims.begin(), dims.end(), own.begin(), own.end(), graph::ProveEqual);
}

WarpShape ShapeOf(const Site& site) {
  const ConvGeometry c = *ReadConv(site);
  const ConvWindows windows(c);
  WarpShape s;
  s.type = site.input(0).dtype;
  s.lead = {c.y[0]};
  s.m = windows.Columns();
  s.n = c.w[0];
  s.k = windows.Depth();
  s.b_along_k = false;
  if (c.w[1] % kPiece == 0) s.a_vector = kPiece;
  if (s.n % kPiece == 0) s.b_vector = kPiece;
  s.out_vector = WarpStoreVector(site, s.n);
  return s;
}

Space SpaceOf(const Site& site) { return WarpTileSpace(ShapeOf(site), site.machine); }

std::vector<Want> Wants(const Site& site, const Point&) {
  const graph::Node& n = site.node();
  const int rank = site.input(0).rank();
  StorageDesc weights;
  for (int i = 2; i < rank; ++i) weights.order.push_back(i);
  weights.order.insert(weights.order.end(), {1, 0});
  std::vector<Want> wants = {{n.inputs[0], ChannelsLast(rank)}, {n.inputs[1], weights}};
  for (graph::ValueId v : site.region.outputs) wants.push_back({v, ChannelsLast(rank)});
  return wants;
}

WorkDescription Work(const Site& site, const Point& point) {
  const WarpShape shape = ShapeOf(site);
  WorkDescription work = WarpTileWork(shape, site, point);
  if (shape.a_vector == 1)
    work.vector_ops += ElementwiseOps(work, shape, point, WarpTileRows(point));
  return work;
}

// The channel and the tap of k: whole pieces of channels, where they come so.
Indices TapOf(const ConvGeometry& c, const Expr& k) {
  std::vector<Expr> taps;
  for (size_t d = 2; d < c.w.size(); ++d) taps.push_back(IndexConst(c.w[d]));
  const int64_t piece = c.w[1] % kPiece == 0 ? kPiece : 1, pieces = c.w[1] / piece;
  const Expr whole = k / piece;
  Indices out = Delinearize(whole / pieces, taps);
  out.insert(out.begin(), piece == 1 ? whole % pieces : whole % pieces * piece + k % piece);
  return out;
}

// Within an axis of the image: what is outside is not read, but has to be somewhere.
Expr Inside(const Expr& x, int64_t size) {
  return Max(IndexConst(0), Min(x, IndexConst(size - 1)));
}

Operand Build(Group& group, const graph::Node& node, const Point& point) {
  OpContext op = group.Context(node);
  const ConvGeometry c = *ReadConv(group.site());
  const WarpShape shape = ShapeOf(group.site());
  const ConvWindows windows(c);
  const std::vector<Expr> places(op.out.dims.begin() + 2, op.out.dims.end());
  const bool tail = WarpTileDepth(shape, point) != shape.k;
  // Steps behind the end of k: of a factor that comes in pieces along it, by whole pieces.
  const auto within = [&](const Expr& k, int64_t piece, Expr* inside) {
    if (!tail) return k;
    const int64_t pieces = shape.k / piece;
    AddCondition(inside, Lt(k / piece, IndexConst(pieces)));
    const Expr kept = Min(k / piece, IndexConst(pieces - 1));
    return piece == 1 ? kept : kept * piece + k % piece;
  };
  WarpOperands operands;
  operands.b_has_lead = false;
  operands.a = [&](const Indices& lead, const Expr& i, const Expr& k) {
    Expr inside;
    const Indices tap = TapOf(c, within(k, shape.a_vector, &inside));
    const Expr row = Around(i, shape.m, WarpTileRows(point), 1);
    const Indices place = windows.Place(row, tap, &inside);
    Indices at = {lead[0], tap[0]};
    for (size_t d = 0; d < place.size(); ++d)
      at.push_back(inside ? Inside(place[d], c.x[d + 2]) : place[d]);
    return OrZero(inside, op.in[0].at(at));
  };
  operands.b = [&](const Indices&, const Expr& j, const Expr& k) {
    Expr inside;
    Indices at = TapOf(c, within(k, 1, &inside));
    at.insert(at.begin(), Around(j, shape.n, WarpTileColumns(point), shape.b_vector));
    return OrZero(inside, op.in[1].at(at));
  };
  const auto sums = BuildWarpTiles(group, op.name, shape, operands, point);
  return As(op.out.dtype, {kF32, op.out.dims, [op, sums, places](const Indices& i) {
                             const Expr row = Linearize({i.begin() + 2, i.end()}, places);
                             const Expr sum = sums({i[0], row, i[1]});
                             return op.Has(2) ? sum + As(kF32, op.in[2]).at({i[1]}) : sum;
                           }});
}

void ScheduleIt(Schedule& s, const Parts& parts, const Machine& machine, const Point& point) {
  const Names loops = s.GetLoops(OnlyBlock(s, parts, BlockRole::kOutput));
  if (!s.ok() || loops.size() < 3) return;
  const Names places(loops.begin() + 2, loops.end());
  s.Reorder(Concat({{loops[0]}, places, {loops[1]}}));
  ScheduleWarpTiles(s, parts, machine, point, {.rows = places.size(), .columns = 1});
}

constexpr OpKind kOps[] = {OpKind::kConv};

}  // namespace

extern const Algorithm kWarpImageConv;
const Algorithm kWarpImageConv = {"warp_image_conv", kOps, IsFor, SpaceOf, Wants, Work, Build,
                                  ScheduleIt};

namespace {

bool IsForGroups(const Site& site) {
  return IsFor(site) && HasGroupTiles(ShapeOf(site), site.machine);
}
Space GroupSpaceOf(const Site& site) { return GroupTileSpace(ShapeOf(site), site.machine); }

}  // namespace

extern const Algorithm kGroupImageConv;
const Algorithm kGroupImageConv = {
    "group_image_conv", kOps, IsForGroups, GroupSpaceOf, Wants, Work, Build, ScheduleIt, 3};

}  // namespace tenon::ops
