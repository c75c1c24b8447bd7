// Kernels that differ in sizes alone are kin, near ones teach each other, and nothing else does.
#include "tune/transfer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "graph/text.h"
#include "plan/region.h"
#include "plan/space.h"
#include "records.h"
#include "tune/history.h"

namespace tenon::tune {
namespace {

graph::Graph Product(int64_t m, int64_t n, const std::string& more = "") {
  const std::string text = fmt::format(
      "graph @g(%0 \"x\": f32[{0}, 256], %1 \"w\": f32[256, {1}]) {{\n"
      "  %2: f32[{0}, {1}] = matmul(%0, %1)\n{2}}}\n",
      m, n, more.empty() ? "  return %2 \"y\"\n" : more);
  return graph::Parse(text).value();
}
graph::Graph Depthwise(int64_t channels, int64_t pad) {
  return graph::Parse(
             fmt::format(
                 "graph @g(%0 \"x\": f32[1, {0}, 28, 28], %1 \"w\": f32[{0}, 1, 3, 3]) {{\n"
                 "  %2: f32[1, {0}, {1}, {1}] = conv(%0, %1) {{group: {0}, pads: [{2}, {2}, "
                 "{2}, {2}]}}\n  return %2 \"y\"\n}}\n",
                 channels, 26 + 2 * pad, pad))
      .value();
}
graph::Graph Region(const graph::Graph& g) {
  return graph::GroupOf(g, graph::KernelNodes(g)[0]).region;
}

TEST(Transfer, FamiliesDifferInMoreThanSizes) {
  const std::string product = FamilyOf(Region(Product(64, 64))).text;
  EXPECT_EQ(FamilyOf(Region(Product(17, 1000))).text, product);
  EXPECT_NE(FamilyOf(Region(Product(1, 64))).text, product) << "a row is another computation";
  const std::string depthwise = FamilyOf(Region(Depthwise(96, 1))).text;
  EXPECT_EQ(FamilyOf(Region(Depthwise(144, 1))).text, depthwise) << "groups are a size";
  EXPECT_NE(FamilyOf(Region(Depthwise(96, 0))).text, depthwise);
}

TEST(Transfer, TheNearestSpeaks) {
  Transfer t;
  EXPECT_TRUE(t.empty());
  EXPECT_FALSE(t.NearestTo(Region(Product(64, 64))));
  t.Add(Region(Product(64, 64)), "a", {{"p {}", 0.5}});
  t.Add(Region(Product(64, 128)), "b", {{"p {}", -0.5}});
  const auto near = t.NearestTo(Region(Product(64, 120)));
  ASSERT_TRUE(near);
  EXPECT_EQ(near->kernel, "b");
  EXPECT_EQ(t.NearestTo(Region(Product(60, 64)))->kernel, "a");
  EXPECT_EQ(t.NearestTo(Region(Product(64, 64)))->distance, 0);
  EXPECT_FALSE(t.NearestTo(Region(Product(64, 4096)))) << "too far";
  EXPECT_FALSE(t.NearestTo(Region(Depthwise(96, 1))));
}

TEST(Transfer, FartherKinSayLess) {
  const std::map<std::string, double> residuals = {{"p {}", 1.0}};
  const Gaussian opinion{0, 0.04};
  const auto at = [&](double distance, const std::string& trace) {
    return Transfer::Residual({"a", distance, &residuals}, trace, opinion);
  };
  EXPECT_DOUBLE_EQ(at(0, "p {}"), 1.0);
  EXPECT_LT(at(1, "p {}"), 1.0);
  EXPECT_GT(at(1, "p {}"), at(2, "p {}"));
  EXPECT_GT(at(2, "p {}"), 0.2);
  EXPECT_DOUBLE_EQ(at(0, "q {}"), 0.2) << "the opinion, and a standard deviation";
}

// A log of one product decides about another one, without a trial.
TEST(Transfer, PricesOfKinAreCorrected) {
  const Machine machine = Machine::Of(Target::Parse("llvm -mcpu=x86-64-v3").value());
  const graph::Graph small = Product(64, 64), large = Product(96, 64);
  const Task known = TaskOf(small, graph::KernelNodes(small)[0], machine).value();
  const Task asked = TaskOf(large, graph::KernelNodes(large)[0], machine).value();
  // The fastest is one of both that the model does not take.
  const Candidate* winner = nullptr;
  for (const Candidate& c : known.candidates) {
    if (winner) break;
    for (size_t i = 1; i < asked.candidates.size(); ++i) {
      const Candidate& other = asked.candidates[i];
      if (c.Trace() == other.Trace() && other.predicted > asked.candidates[0].predicted)
        winner = &c;
    }
  }
  ASSERT_TRUE(winner);
  LogContents contents;
  contents.kernels[known.kernel] = known.Text();
  for (const Candidate& c : known.candidates) {
    const bool leads = &c == winner;
    contents.records.push_back(RecordOf(known, c, leads ? c.predicted / 8 : c.predicted, leads));
  }
  const LogPrices prices(contents, {"", "llvm", 1, "warm"}, machine);
  const graph::NodeId node = plan::FindKernel(asked.graph, kFunction).value();
  const graph::Group group = graph::GroupOf(asked.graph, node);
  const ops::Site site{group.region, group.anchor, machine};
  std::string best;
  double least = 0;
  for (const Candidate& c : asked.candidates) {
    const std::optional<double> price = prices.Find(*c.algorithm, site, c.point);
    ASSERT_TRUE(price);
    if (best.empty() || *price < least) {
      best = c.Trace();
      least = *price;
    }
  }
  EXPECT_EQ(best, winner->Trace());
}

// Records of another state of the caches count where there are none of the state that is asked for.
TEST(Transfer, StatesOfCachesAreKeptApart) {
  LogContents contents;
  Record r;
  r.kernel = "k";
  r.target = "llvm";
  r.algorithm = "packed_matmul";
  r.epoch = ops::FindAlgorithm(r.algorithm)->epoch;
  r.point = "{nv: 2}";
  r.outcome = kOk;
  r.leader = true;
  r.seconds = 1e-6;
  r.cache = "warm";
  contents.records.push_back(r);
  EXPECT_TRUE(History::Of(contents, {"", "llvm", 1, "warm"}).Find("k"));
  const History far = History::Of(contents, {"", "llvm", 1, "far weights"});
  EXPECT_FALSE(far.Find("k"));
  EXPECT_EQ(far.others(), 1);
  const Machine machine = Machine::Of(Target::Host());
  EXPECT_TRUE(LogPrices(contents, {"", "llvm", 1, "far weights"}, machine).FindKernel("k"));
}

}  // namespace
}  // namespace tenon::tune
