// Whole spaces of one product and one convolution of real networks: every point (200 by seed where
// there are more) is planned, built, replayed from the trace of a point of the same structure, and
// run against the graph's meaning; and what planning chooses is the cheapest of the printed points.
#include "plan/space.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <random>

#include "graph/text.h"
#include "ops/kernel.h"
#include "plan/passes.h"
#include "plan/region.h"
#include "run.h"

namespace tenon::plan {
namespace {

using graph::Array;
using graph::Graph;

const Machine& TestMachine() {
  static const Machine kMachine =
      Machine::Of(Target::Parse("llvm -mtriple=x86_64-linux-gnu -mcpu=core-avx2").value());
  return kMachine;
}

Graph MustParse(const std::string& text) {
  Expected<Graph> g = graph::Parse(text, "test");
  EXPECT_TRUE(g) << (g ? "" : ToString(g.errors()));
  return g ? *g : Graph{};
}

#if !defined(__has_feature)
#define __has_feature(x) 0
#endif
constexpr bool kFewPoints = __has_feature(address_sanitizer);
constexpr size_t kPoints = kFewPoints ? 10 : 200;

// Points whose schedules have the same steps replay each other's traces.
class Replays {
 public:
  void Check(const ops::Kernel& kernel, const Schedule& scheduled) {
    for (const auto& [point, trace] : known_) {
      if (!kernel.space.SameStructure(point, kernel.point)) continue;
      Module module;
      module.Add(kernel.func);
      Schedule replayed(module, kernel.func->name);
      std::map<std::string, int64_t> choices;
      for (const graph::Choice& c : kernel.point) choices[c.name] = c.value;
      replayed.UseDecisions(choices);
      const Status status = replayed.Replay(trace);
      ASSERT_TRUE(status) << ToString(status.errors());
      std::string where;
      EXPECT_TRUE(StructuralEqual(replayed.func(), scheduled.func(), &where)) << where;
      ++replayed_;
      return;
    }
    known_.emplace_back(kernel.point, scheduled.trace());
  }
  size_t replayed() const { return replayed_; }

 private:
  std::vector<std::pair<ops::Point, Trace>> known_;
  size_t replayed_ = 0;
};

void CheckReplay(const PlannedNode& planned, Replays* replays) {
  const graph::Group group = graph::GroupOf(planned.graph, planned.node);
  ops::KernelRequest request;
  request.name = "k";
  request.region = &group.region;
  request.machine = &TestMachine();
  request.plan = planned.graph.node(planned.node).plan.get();
  Expected<ops::Kernel> kernel = ops::BuildKernel(request);
  ASSERT_TRUE(kernel) << ToString(kernel.errors());
  Expected<Schedule> schedule = ops::ScheduleKernel(*kernel, TestMachine());
  ASSERT_TRUE(schedule) << ToString(schedule.errors());
  replays->Check(*kernel, *schedule);
}

void CheckPoints(const Graph& g, const std::string& node, const char* algorithm, size_t least) {
  const graph::GraphPassContext context{&TestMachine()};
  const std::vector<AlgorithmSpace> spaces = SpacesOf(g, *FindKernel(g, node), context);
  ASSERT_EQ(spaces[0].algorithm->name, std::string(algorithm));
  std::vector<AlgorithmSpace::Priced> points = spaces[0].points;
  EXPECT_GE(points.size(), least);
  std::shuffle(points.begin(), points.end(), std::mt19937(1));
  if (points.size() > kPoints) points.resize(kPoints);
  std::vector<Array> inputs = graph::RandomInputs(g, 5);
  for (Array& a : inputs) {
    for (double& x : a.data) x = std::round(x * 2);
  }
  const std::vector<Array> want = graph::GraphEvaluator(g).Run(inputs);
  Replays replays;
  for (const auto& p : points) {
    const NamedPoint point{node, algorithm, p.point};
    SCOPED_TRACE(point.ToString());
    Expected<PlannedNode> planned = WithPoint(g, point, context);
    ASSERT_TRUE(planned) << ToString(planned.errors());
    testing::ExpectRuns(planned->graph, TestMachine(), inputs, want);
    CheckReplay(*planned, &replays);
    if (::testing::Test::HasFailure()) return;
  }
  // Few points rarely have the same steps.
  if (!kFewPoints) EXPECT_GT(replays.replayed(), points.size() / 4);
}

// A linear layer of bert-base (128 x 768 x 768), with what follows it; fewer rows and columns.
TEST(Space, EveryPointOfAProduct) {
  CheckPoints(
      MustParse(
          R"(graph @g(%0 "x": f32[96, 2], %1 "w": f32[2, 40], %2 "b": f32[40], %3 "r": f32[96, 40]) {
  %4: f32[96, 40] = fused(%0, %1, %2, %3) "mm" region(%0: f32[96, 2], %1: f32[2, 40], %2: f32[40], %3: f32[96, 40]) {
    %4: f32[96, 40] = matmul(%0, %1)
    %5: f32[96, 40] = add(%4, %2)
    %6: f32[96, 40] = add(%5, %3)
    return %6 "y"
  }
  return %4 "y"
})"),
      "mm", "packed_matmul", 150);
}

// A convolution of resnet's (3 x 3 on 56 x 56, 64 channels), with what follows it; fewer of each.
TEST(Space, EveryPointOfAConvolution) {
  CheckPoints(
      MustParse(
          R"(graph @g(%0 "x": f32[1, 8, 4, 7], %1 "w": f32[16, 8, 3, 3], %2 "b": f32[16], %3 "r": f32[1, 16, 4, 7]) {
  %4: f32[1, 16, 4, 7] = fused(%0, %1, %2, %3) "conv" region(%0: f32[1, 8, 4, 7], %1: f32[16, 8, 3, 3], %2: f32[16], %3: f32[1, 16, 4, 7]) {
    %4: f32[1, 16, 4, 7] = conv(%0, %1, %2) {pads: [1, 1, 1, 1]}
    %5: f32[1, 16, 4, 7] = add(%4, %3)
    %6: f32[1, 16, 4, 7] = relu(%5)
    return %6 "y"
  }
  return %4 "y"
})"),
      "conv", "direct_conv", 50);
}

// Along one axis, at lengths around a tile's and with steps that vectors along the axis would trip
// over.
TEST(Space, EveryPointOfAConvolutionOfOneAxis) {
  struct Case {
    int channels, length, stride, dilation;
  };
  for (const Case& c :
       {Case{8, 3, 1, 1}, {9, 8, 1, 2}, {16, 14, 2, 1}, {7, 23, 3, 1}, {8, 61, 2, 2}}) {
    const int results = (c.length + 2 - 2 * c.dilation - 1) / c.stride + 1;
    const std::string x = fmt::format("f32[2, {}, {}]", c.channels, c.length);
    const std::string w = fmt::format("f32[17, {}, 3]", c.channels);
    const std::string y = fmt::format("f32[2, 17, {}]", results);
    CheckPoints(MustParse(fmt::format(R"(graph @g(%0 "x": {0}, %1 "w": {1}, %2 "b": f32[17]) {{
  %3: {2} = fused(%0, %1, %2) "conv" region(%0: {0}, %1: {1}, %2: f32[17]) {{
    %3: {2} = conv(%0, %1, %2) {{strides: [{3}], dilations: [{4}], pads: [1, 1]}}
    %4: {2} = relu(%3)
    return %4 "y"
  }}
  return %3 "y"
}})",
                                      x, w, y, c.stride, c.dilation)),
                "conv", "direct_conv", 10);
  }
}

// The choice of a planned node as an entry of the printed list, and that list's least price.
void CheckChosen(const Graph& g, const std::string& node) {
  const graph::GraphPassContext context{&TestMachine()};
  const Graph planned = graph::FindAnyGraphPass("plan_groups")->run(g, context);
  const graph::Plan& plan = *planned.node(*FindKernel(planned, node)).plan;
  const auto printed =
      nlohmann::json::parse(SpacesJson(g, {*FindKernel(g, node)}, context, true)).at(0);
  double least = 0, chosen = 0;
  size_t points = 0;
  for (const auto& space : printed.at("algorithms")) {
    for (const auto& point : space.at("points")) {
      const double seconds = point.at("seconds");
      least = points++ == 0 ? seconds : std::min(least, seconds);
      bool same = space.at("algorithm") == plan.algorithm;
      for (const graph::Choice& c : plan.AllChoices())
        same = same && point.at("choices").at(c.name) == c.value;
      if (same) chosen = seconds;
    }
  }
  EXPECT_GT(points, 40u);
  ASSERT_GT(chosen, 0) << plan.algorithm;
  EXPECT_LE(chosen, least * (1 + 1e-8));
  EXPECT_NEAR(plan.seconds, chosen, chosen * 5e-3);
}

TEST(Space, TheChosenProductIsTheCheapestPrinted) {
  CheckChosen(MustParse(R"(graph @g(%0 "x": f32[128, 768]) {
  %1: f32[1, 1] = const [1]
  %2 "w": f32[768, 768] = expand(%1) {shape: [768, 768]}
  %3: f32[128, 768] = matmul(%0, %2) "mm"
  return %3 "y"
})"),
              "mm");
}

// Eight rows of 4096 columns fill a quarter of the second-level cache. If only rows that fit there
// met a panel one after another, the whole matrix would be streamed several times.
TEST(Space, WherePanelsFitTheCacheAllRowsMeetThem) {
  for (const char* cpu : {"x86-64-v3", "x86-64-v4 -l2-cache=1M"}) {
    const Machine machine = Machine::Of(
        Target::Parse(fmt::format("llvm -mtriple=x86_64-linux-gnu -mcpu={}", cpu)).value());
    for (const char* rows : {"128", "197"}) {
      const Graph g = MustParse(fmt::format(R"(graph @g(%0 "x": f32[{0}, 4096]) {{
  %1: f32[1, 1] = const [1]
  %2 "w": f32[4096, 1024] = expand(%1) {{shape: [4096, 1024]}}
  %3: f32[{0}, 1024] = matmul(%0, %2) "mm"
  return %3 "y"
}})",
                                            rows));
      const graph::GraphPassContext context{&machine};
      const Graph planned = graph::FindAnyGraphPass("plan_groups")->run(g, context);
      const graph::Plan& plan = *planned.node(*FindKernel(planned, "mm")).plan;
      ASSERT_EQ(plan.algorithm, "packed_matmul");
      int64_t together = 1;
      for (const graph::Choice& c : plan.AllChoices()) {
        if (c.name == "tile_rows" || c.name == "row_block") together *= c.value;
      }
      EXPECT_GE(together, std::stol(rows)) << cpu;
    }
  }
}

// Between others of its kind, so that all lies as it wants.
TEST(Space, TheChosenConvolutionIsTheCheapestPrinted) {
  CheckChosen(MustParse(R"(graph @g(%0 "x": f32[1, 64, 56, 56]) {
  %1: f32[1, 1, 1, 1] = const [1]
  %2 "w": f32[64, 64, 3, 3] = expand(%1) {shape: [64, 64, 3, 3]}
  %3: f32[1, 64, 56, 56] = conv(%0, %2) {pads: [1, 1, 1, 1]} "before"
  %4: f32[1, 64, 56, 56] = conv(%3, %2) {pads: [1, 1, 1, 1]} "conv"
  %5: f32[1, 64, 56, 56] = conv(%4, %2) {pads: [1, 1, 1, 1]} "after"
  return %5 "y"
})"),
              "conv");
}

}  // namespace
}  // namespace tenon::plan
