// Convolution where threads run together, as the product of weights and the matrix of windows,
// which is never made: a tile of it is read where it lies (cuDNN's implicit GEMM, arXiv 1410.0759).
// Rows are maps, columns the places of one image, and k runs over taps and, innermost, channels: so
// a step is within one tap where channels come in whole steps. Tiles are those of thread_tile.h.
#include "ops/algorithm/thread_tile.h"
#include "ops/conv_geometry.h"
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
  return c && c->group == 1 && c->pad_value == 0 && site.input(0).dtype == kF32 &&
         site.input(1).dtype == kF32 && c->types.accumulator == kF32 &&
         site.result().dtype == kF32 && c->y[0] > 0 && c->w[1] > 0;
}

// Each window is one place, and windows stand next to each other as places do.
bool IsPointwise(const ConvGeometry& c) {
  for (int64_t s : c.strides) {
    if (s != 1) return false;
  }
  for (int64_t p : c.pads) {
    if (p != 0) return false;
  }
  return c.Window() == 1;
}

TileShape ShapeOf(const ConvGeometry& c) {
  TileShape s{{c.y[0]}, c.w[0], 1, c.w[1] * c.Window()};
  for (size_t i = 2; i < c.y.size(); ++i) s.n *= c.y[i];
  if (s.m % 4 == 0) s.a_vector = 4;
  if (s.n % 4 == 0) s.out_vector = 4;
  if (s.n % 4 == 0 && IsPointwise(c)) s.b_vector = 4;
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

/// Where the product's indices are in the images and the weights.
class Windows {
 public:
  Windows(const ConvGeometry& c, int64_t depth) : c_(c), depth_(depth) {}

  /// Of k: the channel, then the tap along each axis of space.
  Indices Tap(const Expr& step, const Expr& k) const {
    const int64_t channels = c_.w[1];
    Expr tap, channel;
    if (channels % depth_ == 0) {
      const int64_t steps = channels / depth_;
      tap = step / steps;
      channel = step % steps * depth_ + k;
    } else {
      const Expr kk = step * depth_ + k;
      tap = kk / channels;
      channel = kk % channels;
    }
    Indices out = Delinearize(tap, Sizes(c_.w));
    out.insert(out.begin(), channel);
    return out;
  }
  bool HasTail() const { return c_.w[1] * c_.Window() % depth_ != 0; }
  Expr Within(const Expr& step, const Expr& k) const {
    return Lt(step * depth_ + k, IndexConst(c_.w[1] * c_.Window()));
  }

  /// The place in the image that the tap of the column's window meets, and whether there is one.
  Indices Place(const Expr& column, const Indices& tap, Expr* inside) const {
    const Indices at = Delinearize(column, Sizes(c_.y));
    Indices out;
    for (size_t i = 0; i < c_.rank(); ++i) {
      const Expr x = at[i] * c_.strides[i] + tap[i + 1] * c_.dilations[i] - c_.pads[i];
      const int64_t last = (c_.y[i + 2] - 1) * c_.strides[i] + (c_.w[i + 2] - 1) * c_.dilations[i];
      if (c_.pads[i] > 0) And(inside, Le(IndexConst(0), x));
      if (last - c_.pads[i] >= c_.x[i + 2]) And(inside, Lt(x, IndexConst(c_.x[i + 2])));
      out.push_back(x);
    }
    return out;
  }

  static void And(Expr* all, const Expr& one) { *all = *all ? tenon::And(*all, one) : one; }

 private:
  static std::vector<Expr> Sizes(const std::vector<int64_t>& dims) {
    std::vector<Expr> out;
    for (size_t i = 2; i < dims.size(); ++i) out.push_back(IndexConst(dims[i]));
    return out;
  }

  ConvGeometry c_;
  int64_t depth_;
};

Expr Guarded(const Expr& condition, const Expr& value) {
  return condition ? Select::Make(condition, value, MakeConst(value->dtype, 0)) : value;
}

Operand Build(Group& group, const graph::Node& node, const Point& point) {
  OpContext op = group.Context(node);
  const ConvGeometry c = *ReadConv(group.site());
  const TileShape shape = ShapeOf(c);
  const Windows windows(c, ValueOf(point, "depth"));
  const bool ragged_rows = shape.m % TileRows(point) != 0;
  const bool ragged_columns = shape.n % TileColumns(point) != 0;
  TileOperands operands;
  operands.a_has_lead = false;
  operands.a = [&](const Indices&, const Expr& i, const Expr& step, const Expr& k) {
    Indices at = windows.Tap(step, k);
    at.insert(at.begin(), i);
    Expr inside;
    if (ragged_rows) Windows::And(&inside, Lt(i, IndexConst(shape.m)));
    if (windows.HasTail()) Windows::And(&inside, windows.Within(step, k));
    return Guarded(inside, op.in[1].at(at));
  };
  operands.b = [&](const Indices& lead, const Expr& j, const Expr& step, const Expr& k) {
    const Indices tap = windows.Tap(step, k);
    Expr inside;
    if (ragged_columns) Windows::And(&inside, Lt(j, IndexConst(shape.n)));
    if (windows.HasTail()) Windows::And(&inside, windows.Within(step, k));
    Indices at = {lead[0], tap[0]};
    const Indices place = windows.Place(j, tap, &inside);
    at.insert(at.end(), place.begin(), place.end());
    return Guarded(inside, op.in[0].at(at));
  };
  const auto sums = BuildTiles(group, op.name, shape, operands, point);
  const std::vector<Expr> space(op.out.dims.begin() + 2, op.out.dims.end());
  return {kF32, op.out.dims, [op, sums, space](const Indices& i) {
            const Indices place(i.begin() + 2, i.end());
            const Expr sum = sums({i[0], i[1], Linearize(place, space)});
            return op.Has(2) ? sum + op.in[2].at({i[1]}) : sum;
          }};
}

void ScheduleIt(Schedule& s, const Parts& parts, const Machine&, const Point& point) {
  const size_t rank = s.GetLoops(OnlyBlock(s, parts, BlockRole::kOutput)).size();
  ScheduleTiles(s, parts, point, {.columns = rank - 2});
}

constexpr OpKind kOps[] = {OpKind::kConv};

}  // namespace

extern const Algorithm kThreadConv;
const Algorithm kThreadConv = {"thread_conv", kOps, IsFor, SpaceOf, Wants, Work, Build, ScheduleIt};

}  // namespace tenon::ops
