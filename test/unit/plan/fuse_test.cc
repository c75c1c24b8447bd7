// Groups that end earlier than they could, because somebody measured that: what is one kernel
// changes, what is computed does not.
#include "plan/fuse.h"

#include "graph/text.h"
#include "graph/verify.h"
#include "plan/passes.h"
#include "plan/prices.h"
#include "run.h"

namespace tenon::plan {
namespace {

using graph::Graph;
using graph::GrownGroup;

const Machine& FuseMachine() {
  static const Machine kMachine =
      Machine::Of(Target::Parse("llvm -mtriple=x86_64-linux-gnu -mcpu=core-avx2").value());
  return kMachine;
}

// Two equal groups of a product, a sum and a rectifier.
Graph TwoProducts(int64_t rows) {
  const std::string n = std::to_string(rows);
  const std::string text =
      "graph @g(%0 \"x\": f32[" + n +
      ", 8], %1 \"w\": f32[8, 8], %2 \"b\": f32[8], %3 \"v\": f32[8, 8]) {\n  %4: f32[" + n +
      ", 8] = matmul(%0, %1) \"first\"\n  %5 \"added\": f32[" + n +
      ", 8] = add(%4, %2)\n  %6 \"one\": f32[" + n + ", 8] = relu(%5)\n  %7: f32[" + n +
      ", 8] = matmul(%6, %3) \"second\"\n  %8 \"sum\": f32[" + n +
      ", 8] = add(%7, %2)\n  %9 \"two\": f32[" + n + ", 8] = relu(%8)\n  return %9 \"y\"\n}\n";
  return graph::Parse(text, "test").value();
}

size_t Kernels(const Graph& g, const Prices* prices, Graph* planned) {
  const graph::GraphPassContext context{&FuseMachine(), prices};
  const Graph fused = graph::FindAnyGraphPass("fuse")->run(g, context);
  const Status ok = graph::Verify(fused);
  EXPECT_TRUE(ok) << ToString(ok.errors()) << graph::Print(fused);
  *planned = graph::FindAnyGraphPass("plan_groups")->run(fused, context);
  return fused.nodes.size();
}

TEST(Fuse, EndsWhereMeasurementsSay) {
  for (const int64_t rows : {1, 2, 5, 7, 16, 17}) {
    const Graph g = TwoProducts(rows);
    const std::vector<GrownGroup> groups = graph::GrownGroups(g);
    ASSERT_EQ(groups.size(), 2U);
    EXPECT_EQ(groups[0].key, groups[1].key) << "they compute the same";
    EXPECT_EQ(groups[0].result, "one");
    EXPECT_EQ(groups[1].result, "two");
    EXPECT_EQ(groups[0].ends, (std::vector<size_t>{1, 2}));
    std::vector<graph::Array> inputs = graph::RandomInputs(g, 3);
    for (graph::Array& a : inputs) {
      for (double& x : a.data) x = std::round(x * 2);
    }
    const std::vector<graph::Array> want = graph::GraphEvaluator(g).Run(inputs);
    Graph planned;
    EXPECT_EQ(Kernels(g, nullptr, &planned), 2U);
    for (const size_t nodes : groups[0].ends) {
      const WithCuts in_parts(nullptr, {{groups[0].key, nodes}});
      EXPECT_EQ(Kernels(g, &in_parts, &planned), 4U);
      testing::ExpectRuns(planned, FuseMachine(), inputs, want);
    }
    // Where no group of that kind could end, and of another group, nothing changes.
    for (const Cuts& cuts : {Cuts{{groups[0].key, 3}}, Cuts{{groups[0].key, 0}},
                             Cuts{{groups[0].key, 99}}, Cuts{{std::string(32, 'a'), 1}}}) {
      const WithCuts none(nullptr, cuts);
      EXPECT_EQ(Kernels(g, &none, &planned), 2U);
    }
  }
}

// A group ends nowhere where two values would leave it.
TEST(Fuse, EndsWhereOneValueLeaves) {
  const Graph g = graph::Parse(
                      R"(graph @g(%0 "x": f32[4, 8], %1 "w": f32[8, 8]) {
  %2: f32[4, 8] = matmul(%0, %1)
  %3: f32[4, 8] = relu(%2)
  %4: f32[4, 8] = exp(%3)
  %5 "end": f32[4, 8] = add(%3, %4)
  return %5 "y"
})",
                      "test")
                      .value();
  const std::vector<GrownGroup> groups = graph::GrownGroups(g);
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].ends, (std::vector<size_t>{1, 2}));
}

}  // namespace
}  // namespace tenon::plan
