// Pooling and reductions over space on feature maps in channel blocks, by their definitions:
// vectors of channels run over the window.
#include <algorithm>

#include "ops/algorithm/tile_schedule.h"
#include "ops/conv_geometry.h"
#include "ops/group.h"
#include "ops/tiling.h"

namespace tenon::ops {

using graph::OpKind;

namespace {

const DType kF32 = DType::Float(32);

bool IsHalf(DType type) { return type.IsFloat() && type.bits == 16; }

// The result, like the input, has rows and columns; a reduction keeps its channels.
bool IsFor(const Site& site) {
  if (site.node().outputs.size() != 1) return false;
  const graph::TensorType &x = site.input(0), &y = site.result();
  if (x.rank() != 4 || y.rank() != 4 || !AsInt(x.dims[1])) return false;
  if (AsInt(x.dims[1]) != AsInt(y.dims[1]) || *AsInt(y.dims[1]) < 2) return false;
  // Bytes have no sums here, and a maximum of them is one.
  const DType type = site.input(0).dtype;
  const bool bytes = type.IsInt() && type.bits == 8 && site.node().op == OpKind::kMaxPool;
  if (!(type == kF32 || IsHalf(type) || bytes) || site.machine.warp != 0) return false;
  if (site.node().op != OpKind::kReduce) return true;
  const std::vector<int64_t> axes = site.node().attrs.GetInts("axes");
  return std::all_of(axes.begin(), axes.end(), [](int64_t a) { return a >= 2; });
}

Space SpaceOf(const Site& site) {
  const std::vector<int64_t> y = site.Sizes(site.result());
  Space space;
  const Expr nv = space.Add({"nv", {1}, false, true});
  const Expr th = space.Add({"tile_height", {1}, false, false});
  const bool is_open = !AreNumbers(site.input(0), 2) || !AreNumbers(site.result(), 2);
  const Expr tw =
      space.Add({"tile_width", OneTo(MaxWidth(y[3], is_open, site.machine)), false, false});
  // A maximum that keeps NaNs has three vectors of a cell at a time: the largest so far, the
  // element, and the larger of both before NaNs are put in.
  const int64_t per_cell = site.node().op == OpKind::kMaxPool ? 3 : 1;
  space.Require(FitsRegisters(th * tw * per_cell, nv, site.machine));
  AddParallelLoops(&space,
                   {TripCount(y[0], site.LeastSizes(site.result())[0]),
                    IndexConst(CeilDiv(y[1], site.machine.Lanes(kF32))), IndexConst(y[2])},
                   is_open);
  return space;
}

std::vector<Want> Wants(const Site& site, const Point& point) {
  const int64_t lanes = site.machine.Lanes(kF32);
  std::vector<Want> wants;
  // What comes of channels that there are not is not stored.
  wants.push_back({site.node().inputs[0], FeatureMap(site.input(0).dims, lanes), false, true});
  WantBlockedResults(site, lanes, &wants);
  return wants;
}

// Elements of the input that one of the result takes.
int64_t Window(const Site& site) {
  if (site.node().op == OpKind::kReduce) {
    return static_cast<int64_t>(BytesOf(site.region, site.input(0)) /
                                std::max(1.0, BytesOf(site.region, site.result())));
  }
  int64_t window = 1;
  for (int64_t k : site.node().attrs.GetInts("kernel")) window *= k;
  return window;
}

WorkDescription Work(const Site& site, const Point& point) {
  const std::vector<int64_t> y = site.Sizes(site.result());
  const int64_t groups = CeilDiv(y[1], site.machine.Lanes(kF32));
  WorkDescription work;
  AddTiles(&work, y[2], y[3], 1, ValueOf(point, "tile_width"), 1,
           static_cast<double>(y[0] * groups * Window(site)));
  work.vector_ops = EpilogueElements(site);
  const double bytes = BorderBytes(site.region);
  work.bytes[site.machine.LevelFor(static_cast<int64_t>(bytes))] = bytes;
  ShareOut(&work, site.machine, {y[0], groups, y[2]}, point);
  return work;
}

// The definition reads channels one by one: on the padded domain it computes on padding zeros. Of
// halves it computes in f32, which holds them all.
Operand Build(Group& group, const graph::Node& n, const Point& point) {
  const StoredTensor& y = group.output(0);
  OpContext op = group.Context(n);
  op.out.dims[1] = y.Padded(1);
  op.in[0].dims[1] = y.Padded(1);
  const DType type = op.out.dtype;
  if (!IsHalf(type)) return Define(op);
  op.out.dtype = kF32;
  op.in[0] = As(kF32, op.in[0]);
  return As(type, Define(op));
}

// The loop over rows of a large window, whose sums are then those of its rows: one chain through
// 57,600 numbers would round each time. Of a single row it is one over pieces. "": the window is
// small.
std::string RowsOf(Schedule& s, const std::string& anchor) {
  constexpr int64_t kLarge = 1024, kPiece = 64;  // elements
  Names window = s.GetReduceLoops(anchor);
  const int64_t most = MostTripsTogether(s, window);
  std::erase_if(window, [&](const std::string& l) { return s.GetExtent(l) == 1; });
  if (window.empty() || (most >= 0 && most < kLarge)) return "";
  return window.size() > 1 ? window[0] : s.Split(window[0], {-1, kPiece})[0];
}

// The sum of one row, in registers under the loop over rows.
void ScheduleRow(Schedule& s, const std::string& row, const std::string& rows) {
  s.SetScope(WrittenBuffer(s, row), Scope::kRegister);
  s.ComputeAt(row, rows);
  const InnerLoops in = LoopsInside(s, row, rows);
  if (!s.ok() || in.spatial.empty()) return;
  const std::string channels = in.spatial.back();
  s.Reorder(Concat({in.reduce, {channels}}));
  s.Vectorize(s.GetLoops(s.DecomposeReduction(row, in.reduce[0])).back());
  s.Vectorize(channels);
}

void ScheduleIt(Schedule& s, const Parts& parts, const Machine& machine, const Point& point) {
  const Names anchors = BlocksOf(s, parts, BlockRole::kAnchor);
  const std::string rows = anchors.size() == 1 ? RowsOf(s, anchors[0]) : "";
  if (rows.empty()) return ScheduleBlockedTile(s, parts, machine, point, false);
  const std::string row = s.RFactor(rows, 0);
  Parts all = parts;
  all[row].role = BlockRole::kRow;
  ScheduleBlockedTile(s, all, machine, point, false);
  if (s.ok()) ScheduleRow(s, row, s.GetReduceLoops(anchors[0])[0]);
}

constexpr OpKind kOps[] = {OpKind::kMaxPool, OpKind::kAvgPool, OpKind::kReduce};

}  // namespace

extern const Algorithm kBlockedWindow;
const Algorithm kBlockedWindow = {"blocked_window", kOps, IsFor, SpaceOf, Wants, Work, Build,
                                  ScheduleIt,       3};

}  // namespace tenon::ops
