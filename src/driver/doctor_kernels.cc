#include "driver/doctor_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "graph/text.h"
#include "loop/parse.h"
#include "loop/rewrite.h"
#include "plan/space.h"
#include "support/strings.h"
#include "tune/kernel_session.h"

namespace tenon::driver {

namespace {

Expected<tune::LoweredCandidate> OfText(const std::string& text) {
  tune::LoweredCandidate out;
  TN_ASSIGN_OR_RETURN(out.module, ParseModule(text, "doctor"));
  TN_ASSIGN_OR_RETURN(out.parameters, tune::ParametersOf(*out.module.Find(tune::kFunction)));
  return out;
}

std::string Quoted(const Target& target) { return fmt::format("\"{}\"", target.ToString()); }

constexpr const char* kClock = R"(
func @kernel(X: i64[1], out Y: i64[1]) target $TARGET$ {exported: true} {
  alloc x: i64[1] in register
  x[0] = X[0]
  for i in 0..$LINKS$ {
    x[0] = x[0] * x[0] + 1i64
  }
  Y[0] = x[0]
}
)";

// Eight sums hide the latency of each.
constexpr const char* kRead = R"(
func @kernel(X: i64[$TEAM$, $TURNS$, 8, $LANES$], out Y: i64[$TEAM$, 8, $LANES$]) target $TARGET$ {exported: true} {
  for w in 0..$TEAM$ $SHARED$ {
    alloc sum: i64[8, $LANES$] in register
    for u0 in 0..8 unrolled {
      for l0 in 0..$LANES$ vectorized {
        sum[u0, l0] = 0i64
      }
    }
    for i in 0..$TURNS$ {
      for u in 0..8 unrolled {
        for l in 0..$LANES$ vectorized {
          sum[u, l] = sum[u, l] + X[w, i, u, l]
        }
      }
    }
    for u1 in 0..8 unrolled {
      for l1 in 0..$LANES$ vectorized {
        Y[w, u1, l1] = sum[u1, l1]
      }
    }
  }
}
)";

constexpr const char* kLaunch = R"(
func @tiny(X: i64[8], out Y: i64[8]) target $TARGET$ {
  for l in 0..8 {
    Y[l] = X[l]
  }
}
func @kernel(X: i64[8], out Y: i64[8]) kind host target $TARGET$ {export_name: "kernel", exported: true} {
$LAUNCHES$}
)";

constexpr const char* kBarrier = R"(
func @kernel(X: i64[$TEAM$], out Y: i64[$TEAM$]) target $TARGET$ {exported: true} {
  alloc A: i64[$TEAM$]
  for first in 0..$TEAM$ parallel {
    A[first] = X[first]
  }
$LOOPS$  for last in 0..$TEAM$ parallel {
    Y[last] = A[last]
  }
}
)";

constexpr const char* kThereAndBack = R"(  for w$I$ in 0..$TEAM$ parallel {
    Y[w$I$] = A[$LAST$ - w$I$]
  }
  for v$I$ in 0..$TEAM$ parallel {
    A[v$I$] = Y[$LAST$ - v$I$]
  }
)";

constexpr const char* kProduct = R"(
graph @product(%0 "x": $A$[$M$, $K$], %1 "w": $B$[$K$, $N$]) {
  %2: $ACC$[$M$, $N$] = matmul(%0, %1)$TYPES$
  return %2 "y"
}
)";

// What is rearranged, before a reader that keeps the result from the graph's border.
constexpr const char* kBlocks = R"(
graph @blocks(%0 "x": f32[1, 256, 56, 56]) {
  %1 "packed": f32[1, 256, 56, 56] layout (d0, d1, d2, d3) -> (d0 size 1, d1 / 16 size 16, d2 size 56, d3 size 56, d1 % 16 size 16) = reshape(%0) {shape: [1, 256, 56, 56]}
  return %1 "y"
}
)";
constexpr const char* kPanels = R"(
graph @panels(%0 "x": f32[1024, 1024]) {
  %1 "packed": f32[1024, 1024] layout (d0, d1) -> (d1 / 64 size 16, d0 size 1024, d1 % 64 size 64) = reshape(%0) {shape: [1024, 1024]}
  return %1 "y"
}
)";

int64_t NumberOf(const ops::Point& point, std::string_view knob) {
  const auto at = std::find_if(point.begin(), point.end(),
                               [&](const graph::Choice& c) { return c.name == knob; });
  return at == point.end() ? 0 : at->value;
}
TileShape TileOf(const tune::Candidate& c) {
  return {NumberOf(c.point, "tile_rows"), NumberOf(c.point, "nv")};
}

}  // namespace

std::string WithWords(std::string text, const std::map<std::string, std::string>& words) {
  for (const auto& [word, value] : words) {
    const std::string mark = "$" + word + "$";
    for (size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += value.size())
      text.replace(at, mark.size(), value);
  }
  return text;
}

Expected<tune::LoweredCandidate> KernelOfText(const std::string& text,
                                              const std::map<std::string, std::string>& words) {
  return OfText(WithWords(text, words));
}

Expected<tune::LoweredCandidate> ClockKernel(const Target& target) {
  return OfText(
      WithWords(kClock, {{"TARGET", Quoted(target)}, {"LINKS", std::to_string(kClockCycles / 4)}}));
}

Expected<tune::LoweredCandidate> ReadKernel(const Machine& machine, int64_t bytes, int64_t copies,
                                            int64_t team) {
  const int64_t lanes = machine.Lanes(DType::Int(64));
  const int64_t turns = std::max<int64_t>(1, bytes / (8 * 8 * lanes));
  TN_ASSIGN_OR_RETURN(tune::LoweredCandidate out,
                      OfText(WithWords(kRead, {{"TARGET", Quoted(*machine.target)},
                                               {"TEAM", std::to_string(team)},
                                               {"SHARED", team > 1 ? "parallel" : ""},
                                               {"TURNS", std::to_string(turns)},
                                               {"LANES", std::to_string(lanes)}})));
  out.parameters[0].copies = copies;
  return out;
}

Expected<tune::LoweredCandidate> LaunchKernel(const Target& target, int64_t launches) {
  std::string text;
  for (int64_t i = 0; i < launches; ++i) text += "  launch @tiny(X, Y) on host\n";
  return OfText(WithWords(kLaunch, {{"TARGET", Quoted(target)}, {"LAUNCHES", text}}));
}

Expected<tune::LoweredCandidate> BarrierKernel(const Target& target, int64_t loops, int64_t team) {
  std::string text;
  for (int64_t i = 0; i < loops; i += 2)
    text += WithWords(kThereAndBack, {{"I", std::to_string(i)}});
  return OfText(
      WithWords(WithWords(kBarrier, {{"LOOPS", text}}), {{"TARGET", Quoted(target)},
                                                         {"TEAM", std::to_string(team)},
                                                         {"LAST", std::to_string(team - 1)}}));
}

Expected<std::vector<PackKernel>> PackKernels(const Machine& machine) {
  std::vector<PackKernel> out;
  for (const char* text : {kBlocks, kPanels}) {
    TN_ASSIGN_OR_RETURN(const graph::Graph g, graph::Parse(text));
    TN_ASSIGN_OR_RETURN(const graph::NodeId node, plan::FindKernel(g, "packed"));
    PackKernel pack;
    TN_ASSIGN_OR_RETURN(pack.kernel, tune::LowerNode(g, node, machine));
    pack.bytes = 4;
    for (const int64_t d : pack.kernel.parameters[0].dims) pack.bytes *= d;
    out.push_back(std::move(pack));
  }
  return out;
}

Expected<tune::Task> ProductTask(const ComputeUnit& unit, int64_t m, int64_t k, int64_t n,
                                 const Machine& machine) {
  const bool widens = unit.acc.IsFloat() && unit.a != unit.acc;
  const std::string types =
      widens ? fmt::format(" {{accumulator: \"{0}\", result: \"{0}\"}}", unit.acc.ToString()) : "";
  TN_ASSIGN_OR_RETURN(const graph::Graph g,
                      graph::Parse(WithWords(kProduct, {{"A", unit.a.ToString()},
                                                        {"B", unit.b.ToString()},
                                                        {"ACC", unit.acc.ToString()},
                                                        {"TYPES", types},
                                                        {"M", std::to_string(m)},
                                                        {"K", std::to_string(k)},
                                                        {"N", std::to_string(n)}})));
  TN_ASSIGN_OR_RETURN(const graph::NodeId node, plan::FindKernel(g, "%2"));
  return tune::TaskOf(g, node, machine);
}

std::vector<TileShape> TileShapesOf(const ComputeUnit& unit, const Machine& machine) {
  constexpr int64_t kRows = 64;  // taller than any tile
  const Expected<tune::Task> task = ProductTask(unit, kRows, 256, 16 * unit.n, machine);
  if (!task) return {};
  std::map<int64_t, int64_t> tallest;  // by vectors
  for (const tune::Candidate& c : task->candidates) {
    const TileShape tile = TileOf(c);
    if (tile.rows > 0 && tile.vectors > 0)
      tallest[tile.vectors] = std::max(tallest[tile.vectors], tile.rows);
  }
  std::vector<TileShape> out;
  for (const auto& [vectors, rows] : tallest) {
    out.push_back({rows, vectors});
    if (rows > 1) out.push_back({1, vectors});
  }
  return out;
}

Expected<ProductKernel> ProductOf(const ComputeUnit& unit, const TileShape& tile, int64_t m,
                                  int64_t bytes, const Machine& machine) {
  ProductKernel out{.rows = tile.rows, .vectors = tile.vectors, .m = m};
  // Panels as long as may be, up to what real products have.
  const int64_t panel = tile.vectors * unit.n, width = std::max<int64_t>(1, unit.b.Bytes());
  const int64_t group = std::max<int64_t>(unit.k, 1) * 16;
  out.k = std::clamp<int64_t>(bytes / (panel * width), group, 512) / group * group;
  out.n = std::max<int64_t>(1, bytes / (out.k * panel * width)) * panel;
  TN_ASSIGN_OR_RETURN(const tune::Task task, ProductTask(unit, out.m, out.k, out.n, machine));
  // The cheapest point with this tile.
  for (const tune::Candidate& c : task.candidates) {
    const TileShape has = TileOf(c);
    if (has.rows != tile.rows || has.vectors != tile.vectors) continue;
    TN_ASSIGN_OR_RETURN(out.kernel, tune::LowerCandidate(task, c, machine, false));
    return out;
  }
  return MakeError(fmt::format("no product of {} has tiles of {} x {} vectors", unit.a.ToString(),
                               tile.rows, tile.vectors));
}

}  // namespace tenon::driver
