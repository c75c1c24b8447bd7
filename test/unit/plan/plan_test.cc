// What planning decides: layouts follow prices, neighbours follow layouts, relayouts stand where
// that is cheaper, and the network computes the same; the same input gives the same plan.
#include <fmt/format.h>

#include <map>

#include "graph/text.h"
#include "graph/verify.h"
#include "plan/passes.h"
#include "plan/prices.h"
#include "plan/space.h"
#include "run.h"

namespace tenon::plan {
namespace {

using graph::Array;
using graph::Graph;
using graph::Node;

const Machine& TestMachine() {
  static const Machine kMachine =
      Machine::Of(Target::Parse("llvm -mtriple=x86_64-linux-gnu -mcpu=core-avx2").value());
  return kMachine;
}

// conv -> depthwise conv -> conv, as in networks for phones; weights are inputs, so that `main` is
// all there is to run.
constexpr const char* kThree =
    R"(graph @g(%0 "x": f32[1, 8, 5, 5], %1 "w1": f32[16, 8, 1, 1], %2 "w2": f32[16, 1, 3, 3], %3 "w3": f32[8, 16, 1, 1]) {
  %4: f32[1, 16, 5, 5] = conv(%0, %1) "first"
  %5: f32[1, 16, 5, 5] = conv(%4, %2) {group: 16, pads: [1, 1, 1, 1]} "depthwise"
  %6: f32[1, 8, 5, 5] = conv(%5, %3) "second"
  return %6 "y"
})";

Graph MustParse(const std::string& text) {
  Expected<Graph> g = graph::Parse(text, "test");
  EXPECT_TRUE(g) << (g ? "" : ToString(g.errors()));
  return g ? *g : Graph{};
}

// What points cost by their node and algorithm, those of direct convolutions also by the blocks in
// which they read; what is not planted is dear.
class Planted : public Prices {
 public:
  using Table = std::map<std::string, double>;
  explicit Planted(Table seconds) : seconds_(std::move(seconds)) {}

  std::optional<double> Find(const ops::Algorithm& algorithm, const ops::Site& site,
                             const ops::Point& point) const override {
    if (site.anchor == graph::kNoNode) return std::nullopt;
    std::string key = site.node().name + ": " + algorithm.name;
    for (const graph::Choice& c : point) {
      if (c.name == "input_block") key += fmt::format(" {}", c.value);
    }
    const auto it = seconds_.find(key);
    return it == seconds_.end() ? 1e-2 : it->second;
  }

 private:
  Table seconds_;
};

Graph Planned(const Graph& g, const Prices* prices) {
  const graph::GraphPassContext context{&TestMachine(), prices};
  Graph planned = graph::FindAnyGraphPass("plan_groups")->run(g, context);
  const Status ok = graph::Verify(planned);
  EXPECT_TRUE(ok) << ToString(ok.errors()) << graph::Print(planned);
  return planned;
}

const Node& NodeOf(const Graph& g, const std::string& name) { return g.node(*FindKernel(g, name)); }
std::string AlgorithmOf(const Graph& g, const std::string& name) {
  return NodeOf(g, name).plan->algorithm;
}
bool IsBlocked(const Graph& g, const std::string& name) {
  const graph::TensorType& type = g.type(NodeOf(g, name).outputs[0]);
  const auto desc = graph::ReadLayout(type.layout, type.dims);
  return desc && !desc->blocks.empty();
}
// The value that a node reads first comes through a relayout of a computed value.
bool ReadsThroughRelayout(const Graph& g, const std::string& name) {
  const graph::NodeId producer = g.value(NodeOf(g, name).inputs[0]).producer;
  return producer != graph::kNoNode && g.node(producer).op == graph::OpKind::kReshape;
}

void ExpectMeaningStays(const Graph& before, const Graph& planned) {
  std::vector<Array> inputs = graph::RandomInputs(before, 3);
  for (Array& a : inputs) {
    for (double& x : a.data) x = std::round(x * 2);
  }
  testing::ExpectRuns(planned, TestMachine(), inputs, graph::GraphEvaluator(before).Run(inputs));
}

// A relayout of such a small value costs less than a tenth of kCheap.
constexpr double kCheap = 1e-5, kDear = 1e-3;

TEST(Planning, ALayoutFollowsPricesAndNeighboursFollowIt) {
  const Graph g = MustParse(kThree);
  // The algorithms on channel blocks are cheap everywhere: all lies in blocks.
  Planted::Table prices = {{"first: direct_conv 1", kCheap},
                           {"depthwise: depthwise_conv", kCheap},
                           {"second: direct_conv 8", kCheap}};
  const Planted in_blocks(prices);
  const Graph before = Planned(g, &in_blocks);
  EXPECT_TRUE(IsBlocked(before, "first") && IsBlocked(before, "depthwise"));
  EXPECT_FALSE(ReadsThroughRelayout(before, "depthwise"));
  EXPECT_EQ(ops::ValueOf(NodeOf(before, "second").plan->layout, "input_block"), 8);
  EXPECT_FALSE(ReadsThroughRelayout(before, "second"));
  ExpectMeaningStays(g, before);

  // One price flips: the second convolution reads rows, not blocks. Its neighbour has no cheap way
  // to write rows, so they are arranged in between.
  prices["second: direct_conv 8"] = kDear;
  prices["second: direct_conv 1"] = kCheap;
  const Planted flipped(prices);
  const Graph arranged = Planned(g, &flipped);
  EXPECT_EQ(ops::ValueOf(NodeOf(arranged, "second").plan->layout, "input_block"), 1);
  EXPECT_EQ(AlgorithmOf(arranged, "depthwise"), "depthwise_conv");
  EXPECT_TRUE(IsBlocked(arranged, "depthwise"));
  EXPECT_TRUE(ReadsThroughRelayout(arranged, "second"));
  EXPECT_FALSE(ReadsThroughRelayout(arranged, "depthwise"));
  ExpectMeaningStays(g, arranged);

  // With a neighbour that writes either way for less than both cost, it follows; blocks end in
  // front of it.
  prices["depthwise: definition"] = kCheap / 2;
  const Planted following(prices);
  const Graph followed = Planned(g, &following);
  EXPECT_EQ(AlgorithmOf(followed, "depthwise"), "definition");
  EXPECT_FALSE(IsBlocked(followed, "depthwise"));
  EXPECT_TRUE(IsBlocked(followed, "first"));
  EXPECT_FALSE(ReadsThroughRelayout(followed, "second"));
  EXPECT_FALSE(ReadsThroughRelayout(followed, "depthwise"));
  ExpectMeaningStays(g, followed);
}

// As maps of two axes do; the second one's stride is nothing to vectors of channels.
TEST(Planning, ConvolutionsAlongOneAxisHandOnBlocks) {
  const Graph g = MustParse(
      R"(graph @g(%0 "x": f32[1, 3, 29], %1 "w1": f32[16, 3, 3], %2 "w2": f32[24, 16, 3]) {
  %3: f32[1, 16, 29] = conv(%0, %1) {pads: [1, 1]} "first"
  %4: f32[1, 24, 15] = conv(%3, %2) {strides: [2], pads: [1, 1]} "second"
  return %4 "y"
})");
  const Planted prices({{"first: direct_conv 1", kCheap}, {"second: direct_conv 8", kCheap}});
  const Graph planned = Planned(g, &prices);
  EXPECT_EQ(AlgorithmOf(planned, "first"), "direct_conv");
  EXPECT_EQ(AlgorithmOf(planned, "second"), "direct_conv");
  EXPECT_TRUE(IsBlocked(planned, "first"));
  ExpectMeaningStays(g, planned);
}

TEST(Planning, SameInputSamePlan) {
  const Graph g = MustParse(kThree);
  const std::string once = graph::Print(Planned(g, nullptr));
  for (int round = 0; round < 3; ++round) EXPECT_EQ(graph::Print(Planned(g, nullptr)), once);
  // What was planned stays, and reads back.
  Expected<Graph> again = graph::Parse(once, "planned");
  ASSERT_TRUE(again) << ToString(again.errors());
  EXPECT_EQ(graph::Print(Planned(*again, nullptr)), once);
}

// Any point on any node, whatever its neighbours do.
TEST(Planning, PointsOnOneNodeKeepTheMeaning) {
  const Graph g = MustParse(kThree);
  const graph::GraphPassContext context{&TestMachine()};
  for (const Graph& start : {g, Planned(g, nullptr)}) {
    for (const char* name : {"first", "depthwise", "second"}) {
      for (const AlgorithmSpace& space : SpacesOf(start, *FindKernel(start, name), context)) {
        const size_t step = std::max<size_t>(1, space.points.size() / 3);
        for (size_t i = 0; i < space.points.size(); i += step) {
          const NamedPoint point{name, space.algorithm->name, space.points[i].point};
          SCOPED_TRACE(point.ToString());
          Expected<PlannedNode> chosen = WithPoint(start, point, context);
          ASSERT_TRUE(chosen) << ToString(chosen.errors());
          const Status ok = graph::Verify(chosen->graph);
          ASSERT_TRUE(ok) << ToString(ok.errors()) << graph::Print(chosen->graph);
          EXPECT_EQ(chosen->graph.node(chosen->node).name, name);
          EXPECT_EQ(chosen->graph.node(chosen->node).plan->AllChoices(), point.choices);
          ExpectMeaningStays(g, chosen->graph);
          if (::testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

TEST(Planning, PointsPrintAndParse) {
  for (const NamedPoint& point :
       {NamedPoint{"/layer.0/MatMul", "packed_matmul", {{"nv", 4}, {"tile_rows", 6}}},
        NamedPoint{"torch::linear: x", "definition", {}}, NamedPoint{"%7", "rows", {{"n", -1}}}}) {
    Expected<NamedPoint> again = NamedPoint::Parse(point.ToString());
    ASSERT_TRUE(again) << ToString(again.errors());
    EXPECT_EQ(again->node, point.node);
    EXPECT_EQ(again->algorithm, point.algorithm);
    EXPECT_EQ(again->choices, point.choices);
  }
  for (const char* bad : {"", "mm", "mm:", ": rows", "mm: rows {", "mm: rows {a}", "mm: rows {a: }",
                          "mm: rows {a: 1x}", "mm: rows {a: 1, a: 2}", "mm: rows {: 1}",
                          "mm: rows {a: 99999999999999999999}", "mm: rows }"}) {
    EXPECT_FALSE(NamedPoint::Parse(bad)) << bad;
  }
}

}  // namespace
}  // namespace tenon::plan
