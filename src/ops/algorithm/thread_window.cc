// Windows in one channel at a time, where threads run together and channels lie together: pools and
// depthwise convolutions. A thread has some neighbouring channels of one place, which it reads and
// writes as one vector; neighbours among threads are neighbours in memory, and what windows have in
// common comes from the caches.
//
//   out[n, c, h, w]  →  threads over n, h, w, c / vector:
//                         for the window: values[vector] (+|max)= x (· w)
//                         store the vector, with what follows
#include <algorithm>

#include "graph/dims.h"
#include "ops/conv_geometry.h"
#include "ops/group.h"
#include "ops/scheduling.h"
#include "ops/tiling.h"

namespace tenon::ops {

using graph::OpKind;

namespace {

constexpr int64_t kThreads = 128;

bool IsImage(const graph::TensorType& type) {
  return type.rank() == 4 && AreNumbers(type) && type.dtype.IsFloat() &&
         type.dtype.StorageBits() <= 32;
}

bool IsFor(const Site& site) {
  if (site.machine.warp == 0 || site.node().outputs.size() != 1) return false;
  if (site.region.outputs.size() != 1 || !IsImage(site.input(0)) || !IsImage(site.result()))
    return false;
  const std::vector<Expr>& stored = site.region.type(site.region.outputs[0]).dims;
  const std::vector<Expr>& own = site.result().dims;
  if (!std::equal(stored.begin(), stored.end(), own.begin(), own.end(), graph::ProveEqual))
    return false;
  const std::vector<int64_t> y = site.Sizes(site.result());
  if (y[1] < 2 || std::any_of(y.begin(), y.end(), [](int64_t d) { return d < 1; })) return false;
  if (site.node().op != OpKind::kConv) return true;
  const auto c = ReadConv(site);
  return c && c->Depthwise() && c->maps_per_group() == 1;
}

int64_t Window(const Site& site) {
  if (site.node().op == OpKind::kConv) return ReadConv(site)->Window();
  int64_t window = 1;
  for (int64_t k : site.node().attrs.GetInts("kernel")) window *= k;
  return window;
}

Space SpaceOf(const Site& site) {
  const int64_t channels = site.Sizes(site.result())[1];
  const DType stored = site.region.type(site.region.outputs[0]).dtype;
  const int64_t most = 128 / std::max(site.input(0).dtype.StorageBits(), stored.StorageBits());
  std::vector<int64_t> vectors;
  for (int64_t v = 1; v <= most; v *= 2) {
    if (channels % v == 0) vectors.push_back(v);
  }
  Space space;
  space.Add({"vector", vectors, false, true});
  return space;
}

std::vector<Want> Wants(const Site& site, const Point&) {
  const graph::Node& n = site.node();
  std::vector<Want> wants = {{n.inputs[0], ChannelsLast(4)}};
  if (n.op == OpKind::kConv) wants.push_back({n.inputs[1], {.order = {2, 3, 1, 0}}});
  for (graph::ValueId v : site.region.outputs) wants.push_back({v, ChannelsLast(4)});
  return wants;
}

// A step of the window is an address and a condition, and then as many elements as a vector has.
WorkDescription Work(const Site& site, const Point& point) {
  constexpr double kStep = 12, kElement = 3;
  const int64_t vector = ValueOf(point, "vector");
  double results = 1;
  for (int64_t d : site.Sizes(site.result())) results *= static_cast<double>(d);
  const double threads = results / static_cast<double>(vector);
  const auto window = static_cast<double>(Window(site));
  WorkDescription work;
  work.team = site.machine.workers;
  work.tiles = std::max<int64_t>(1, static_cast<int64_t>(threads / kThreads));
  work.vector_ops =
      threads * window * (kStep + kElement * static_cast<double>(vector)) + EpilogueElements(site);
  work.bytes[1] = results * window * site.input(0).dtype.Bytes();
  work.bytes[2] = BorderBytes(site.region);
  return work;
}

void ScheduleIt(Schedule& s, const Parts& parts, const Machine&, const Point& point) {
  const int64_t vector = ValueOf(point, "vector");
  const std::string store = OnlyBlock(s, parts, BlockRole::kOutput);
  const Names axes = s.GetLoops(store);
  if (!s.ok() || axes.size() != 4) return;
  const Names c = s.Split(axes[1], {-1, vector});
  s.Reorder({axes[0], axes[2], axes[3], c[0], c[1]});
  const Names threads = s.Split(s.Fuse({axes[0], axes[2], axes[3], c[0]}), {-1, kThreads});
  s.Bind(threads[0], ThreadAxis::kBlockIdxX);
  s.Bind(threads[1], ThreadAxis::kThreadIdxX);
  const auto vectorize = [&](const Names& loops) {
    for (const std::string& loop : loops) {
      if (vector > 1 && s.GetExtent(loop) == vector) return s.Vectorize(loop);
    }
  };
  const Names anchors = BlocksOf(s, parts, BlockRole::kAnchor);
  for (auto it = anchors.rbegin(); it != anchors.rend(); ++it) {
    s.SetScope(WrittenBuffer(s, *it), Scope::kLocal);
    s.ComputeAt(*it, threads[1]);
    const InnerLoops in = LoopsInside(s, *it, threads[1]);
    if (!s.ok()) return;
    if (!in.reduce.empty()) {
      s.Reorder(Concat({in.reduce, in.spatial}));
      const std::string init = s.DecomposeReduction(*it, in.reduce[0]);
      vectorize(LoopsInside(s, init, threads[1]).spatial);
    }
    vectorize(LoopsInside(s, *it, threads[1]).spatial);
    if (in.reduce.empty()) continue;
    // What a step reads is there as a whole: beside the border too, where it does not count.
    for (const std::string& buffer : ReadBuffers(s, *it)) {
      Schedule tried = s;
      const std::string read = tried.CacheRead(*it, buffer, Scope::kLocal);
      tried.ComputeAt(read, in.reduce.back());
      for (const std::string& loop : LoopsInside(tried, read, in.reduce.back()).spatial) {
        if (vector > 1 && tried.GetExtent(loop) == vector) {
          tried.Vectorize(loop);
          break;
        }
      }
      if (tried.ok()) s = std::move(tried);
    }
    if (s.GetExtent(in.reduce.back()) <= 8) s.Unroll(in.reduce.back());
  }
  s.Vectorize(c[1]);
}

constexpr OpKind kOps[] = {OpKind::kMaxPool, OpKind::kAvgPool, OpKind::kConv};

}  // namespace

extern const Algorithm kThreadWindow;
const Algorithm kThreadWindow = {"thread_window", kOps, IsFor,   SpaceOf,
                                 Wants,           Work, nullptr, ScheduleIt};

}  // namespace tenon::ops
