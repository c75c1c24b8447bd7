// Winograd's convolution where threads run together, as three launches: tiles of the input are
// transformed, a thread each; every point is a product, by tiles of threads (thread_tile.h); and
// tiles of the result are transformed back, a thread each, with what follows the convolution.
//
//   points[p, c, t]  =  Bt · d · B        t: tile of an image, the images one behind the other
//   sums[p, m, t]    =  the sum over c of weights[p, c, m] · points[p, c, t]
//   out[n, m, h, w]  =  At · sums · A
//
// What lies between the launches is (t + 2)^2 / t^2 times the maps, written and read once: 2.25
// times for tiles of 4 x 4. It costs less than it saves where there are many channels.
#include <algorithm>
#include <utility>

#include "graph/dims.h"
#include "ops/algorithm/conv_windows.h"
#include "ops/algorithm/thread_tile.h"
#include "ops/group.h"
#include "ops/scheduling.h"
#include "ops/tiling.h"
#include "ops/winograd.h"

namespace tenon::ops {

using graph::OpKind;
using te::Indices;

namespace {

struct Tiles {
  std::vector<int64_t> x, u, y;  // dims
  std::vector<int64_t> pads;
  int64_t side = 0, down = 0, across = 0;  // of a tile of results, and tiles of an image

  int64_t Points() const { return u[2] * u[3]; }
  int64_t Count() const { return y[0] * down * across; }
};

Tiles ReadTiles(const Site& site) {
  Tiles t{site.Sizes(site.input(0)), site.Sizes(site.input(1)), site.Sizes(site.result()),
          site.node().attrs.GetInts("pads")};
  t.side = t.u[2] - 2;
  t.down = CeilDiv(t.y[2], t.side);
  t.across = CeilDiv(t.y[3], t.side);
  return t;
}

bool IsFor(const Site& site) {
  if (site.machine.warp == 0 || site.region.outputs.size() != 1) return false;
  if (!AreNumbers(site.input(0)) || !AreNumbers(site.input(1)) || !AreNumbers(site.result()))
    return false;
  const Tiles t = ReadTiles(site);
  const std::vector<Expr>& own = site.result().dims;
  const std::vector<Expr>& dims = site.region.type(site.region.outputs[0]).dims;
  return t.u[0] > 1 && t.u[1] > 0 && t.Count() > 1 &&
         std::equal(dims.begin(), dims.end(), own.begin(), own.end(), graph::ProveEqual);
}

TileShape ShapeOf(const Tiles& t) {
  TileShape s{{t.Points()}, t.u[0], t.Count(), t.u[1]};
  if (s.m % 4 == 0) s.a_vector = 4;
  if (s.n % 4 == 0) s.b_vector = s.out_vector = 4;
  return s;
}

Space SpaceOf(const Site& site) { return TileSpace(ShapeOf(ReadTiles(site)), site.machine, false); }

std::vector<Want> Wants(const Site& site, const Point&) {
  std::vector<Want> wants = {{site.node().inputs[0], {}},
                             {site.node().inputs[1], {.order = {2, 3, 1, 0}}}};
  WantPlainResults(site, &wants);
  return wants;
}

// The product, and two launches that wait for memory: each reads or writes once what lies between
// them, by the side of the maps themselves.
WorkDescription Work(const Site& site, const Point& point) {
  constexpr int64_t kBarriersOfLaunch = 5;
  constexpr double kOperations = 8;  // of an element of a transform
  const Tiles t = ReadTiles(site);
  WorkDescription work = TileWork(ShapeOf(t), site, point);
  const auto between = static_cast<double>(t.Points() * t.Count() * (t.u[0] + t.u[1]));
  work.vector_ops += kOperations * between;
  work.packed_bytes = 4 * between;
  work.barriers = 2 * kBarriersOfLaunch;
  return work;
}

Operand Build(Group& group, const graph::Node& node, const Point& point) {
  OpContext op = group.Context(node);
  const Tiles t = ReadTiles(group.site());
  const TileShape shape = ShapeOf(t);
  const int64_t side = t.side, wide = side + 2, depth = ValueOf(point, "depth");
  const Expr channels = IndexConst(t.u[1]), tiles = IndexConst(t.Count()), w = IndexConst(wide);
  const std::vector<Expr> image = {op.out.dims[0], IndexConst(t.down), IndexConst(t.across)};
  const te::Tensor half = te::Compute(
      group.Mark(op.name + "_rows", BlockRole::kInputHalf), {channels, tiles, w, w},
      [&](const Indices& i) -> te::Body {
        const Indices tile = Delinearize(i[1], image);
        return WinogradPoint(side, i[2], [&](const Expr& k) {
          Indices at = {tile[0], i[0], tile[1] * side + k - t.pads[0],
                        tile[2] * side + i[3] - t.pads[1]};
          Expr inside;
          for (size_t a = 2; a < 4; ++a) {
            const int64_t last = (a == 2 ? t.down : t.across) * side + 1 - t.pads[a - 2];
            if (t.pads[a - 2] > 0) AddCondition(&inside, Le(IndexConst(0), at[a]));
            if (last >= t.x[a]) AddCondition(&inside, Lt(at[a], IndexConst(t.x[a])));
          }
          return OrZero(inside, op.in[0].at(at));
        });
      });
  const te::Tensor points = te::Compute(
      group.Mark(op.name + "_points", BlockRole::kInput), {IndexConst(t.Points()), channels, tiles},
      [&](const Indices& i) -> te::Body {
        return WinogradPoint(side, i[0] % wide,
                             [&](const Expr& k) { return half.At({i[1], i[2], i[0] / wide, k}); });
      });
  const bool tail = shape.k % depth != 0;
  const auto within = [&](const Expr& value, const Expr& i, int64_t size, int64_t tile,
                          const Expr& kk) {
    Expr inside;
    if (size % tile != 0) AddCondition(&inside, Lt(i, IndexConst(size)));
    if (tail) AddCondition(&inside, Lt(kk, channels));
    return OrZero(inside, value);
  };
  TileOperands operands;
  operands.a = [&](const Indices& lead, const Expr& i, const Expr& step, const Expr& k) {
    const Expr kk = step * depth + k;
    return within(op.in[1].at({i, kk, lead[0] / wide, lead[0] % wide}), i, shape.m, TileRows(point),
                  kk);
  };
  operands.b = [&](const Indices& lead, const Expr& j, const Expr& step, const Expr& k) {
    const Expr kk = step * depth + k;
    return within(points.At({lead[0], kk, j}), j, shape.n, TileColumns(point), kk);
  };
  const auto products = BuildTiles(group, op.name, shape, operands, point);
  const Expr maps = IndexConst(t.u[0]), s = IndexConst(side);
  const te::Tensor sums = te::Compute(group.Mark(op.name + "_sums", BlockRole::kSums),
                                      {IndexConst(t.Points()), maps, tiles},
                                      [&](const Indices& i) { return products(i); });
  const te::Tensor back = te::Compute(group.Mark(op.name + "_half", BlockRole::kResultHalf),
                                      {maps, tiles, s, w}, [&](const Indices& i) -> te::Body {
                                        return WinogradPlace(side, i[2], [&](const Expr& k) {
                                          return sums.At({k * wide + i[3], i[0], i[1]});
                                        });
                                      });
  const te::Tensor result = te::Compute(group.Mark(op.name + "_tile", BlockRole::kResult),
                                        {maps, tiles, s, s}, [&](const Indices& i) -> te::Body {
                                          return WinogradPlace(side, i[3], [&](const Expr& k) {
                                            return back.At({i[0], i[1], i[2], k});
                                          });
                                        });
  return {op.out.dtype, op.out.dims, [=](const Indices& i) {
            const Expr tile = Linearize({i[0], i[2] / side, i[3] / side}, image);
            const Expr sum = result.At({i[1], tile, i[2] % side, i[3] % side});
            return op.Has(2) ? sum + op.in[2].at({i[1]}) : sum;
          }};
}

// A tile's transform along one axis in a thread's registers, written out.
void ScheduleTransform(Schedule& s, const std::string& block, const std::string& thread) {
  s.SetScope(WrittenBuffer(s, block), Scope::kLocal);
  s.ComputeAt(block, thread);
  for (const std::string& loop : LoopsInside(s, block, thread).spatial) s.Unroll(loop);
}

// Threads over all of these loops, or over the inner ones alone where images and channels are not
// known to be apart otherwise; returns the loop of a block's threads.
std::string Share(Schedule& s, const Names& outer, const Names& inner) {
  constexpr int64_t kThreads = 128;
  Schedule tried = s;
  const Names all = tried.Split(tried.Fuse(Concat({outer, inner})), {-1, kThreads});
  tried.Bind(all[0], ThreadAxis::kBlockIdxX);
  tried.Bind(all[1], ThreadAxis::kThreadIdxX);
  if (tried.ok()) {
    s = std::move(tried);
    return all[1];
  }
  s.Bind(outer.size() > 1 ? s.Fuse(outer) : outer[0], ThreadAxis::kBlockIdxX);
  const Names parts = s.Split(inner.size() > 1 ? s.Fuse(inner) : inner[0], {-1, kThreads});
  s.Bind(parts[0], ThreadAxis::kBlockIdxY);
  s.Bind(parts[1], ThreadAxis::kThreadIdxX);
  return parts[1];
}

void ScheduleIt(Schedule& s, const Parts& parts, const Machine&, const Point& point) {
  const auto block = [&](BlockRole role) { return OnlyBlock(s, parts, role); };
  const std::string out = block(BlockRole::kOutput), sums = block(BlockRole::kSums);
  const Names tiles = BlocksOf(s, parts, BlockRole::kMove);
  const Names axes = s.GetLoops(out), along = s.GetSpatialLoops(block(BlockRole::kResult));
  if (!s.ok() || tiles.size() != 2 || axes.size() != 4 || along.empty()) return;
  const int64_t side = s.GetExtent(along.back());
  const bool whole = s.GetExtent(axes[3]) % side == 0;
  const Names h = s.Split(axes[2], {-1, side}), w = s.Split(axes[3], {-1, side});
  s.Reorder({axes[1], axes[0], h[0], w[0], h[1], w[1]});
  const std::string thread = Share(s, {axes[1], axes[0]}, {h[0], w[0]});
  ScheduleTransform(s, block(BlockRole::kResult), thread);
  ScheduleTransform(s, block(BlockRole::kResultHalf), thread);
  s.Unroll(h[1]);
  if (whole) {
    s.Vectorize(w[1]);
  } else {
    s.Unroll(w[1]);
  }
  ScheduleTile(s, {tiles[0], tiles[1], block(BlockRole::kAnchor), sums}, point, {});
  const std::string input = block(BlockRole::kInput);
  const Names in = s.GetLoops(input);
  if (!s.ok()) return;
  s.Reorder({in[1], in[2], in[0]});
  ScheduleTransform(s, block(BlockRole::kInputHalf), Share(s, {in[1]}, {in[2]}));
  s.Unroll(in[0]);
}

constexpr OpKind kOps[] = {OpKind::kWinogradConv};

}  // namespace

extern const Algorithm kThreadWinogradConv;
const Algorithm kThreadWinogradConv = {
    "thread_winograd_conv", kOps, IsFor, SpaceOf, Wants, Work, Build, ScheduleIt};

}  // namespace tenon::ops
