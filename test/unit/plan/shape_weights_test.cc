// Sizes that count: what is read, what stands for a range, and the region at each.
#include "plan/shape_weights.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "graph/text.h"
#include "plan/region.h"

namespace tenon::plan {
namespace {

// Of a network that has a dim m besides.
graph::Graph Rows(const std::string& dim, const std::string& size = "n") {
  const graph::Graph g =
      graph::Parse(
          fmt::format("graph @g<{}, m: 1..=8>(%0 \"x\": f32[{}, 8], %1 \"z\": f32[n, m]) {{\n"
                      "  %2: f32[{}, 8] = relu(%0)\n"
                      "  return %2 \"y\"\n}}\n",
                      dim, size, size))
          .value();
  return graph::GroupOf(g, graph::KernelNodes(g).at(0)).region;
}
std::vector<std::string> Names(const std::vector<SizedRegion>& all) {
  std::vector<std::string> out;
  for (const SizedRegion& s : all) out.push_back(s.name);
  return out;
}

TEST(ShapeWeights, AreRead) {
  const ShapeWeight s = ShapeWeight::Parse("batch=4, seq=128:2.5").value();
  EXPECT_EQ(s.sizes, (std::map<std::string, int64_t>{{"batch", 4}, {"seq", 128}}));
  EXPECT_EQ(s.weight, 2.5);
  EXPECT_EQ(ShapeWeight::Parse("n=0").value().weight, 1);
  for (const char* bad : {"", "n", "n=", "=3", "n=x", "n=-1", "n=3:", "n=3:0", "n=3:-1", "n=3:nan",
                          "n=3,n=4", "n=3,", "n=3:inf", "n=99999999999999999999"})
    EXPECT_FALSE(ShapeWeight::Parse(bad)) << bad;
}

TEST(ShapeWeights, StandForRanges) {
  const auto all = AtWeightedSizes(Rows("n: 1..=128"), {});
  EXPECT_EQ(Names(all), (std::vector<std::string>{"n=1", "n=11", "n=67", "n=128"}));
  double whole = 0;
  for (const SizedRegion& s : all) {
    whole += s.weight;
    EXPECT_EQ(AsInt(s.region.type(s.region.inputs[0]).dims[0]), s.sizes.at(0));
    EXPECT_EQ(s.region.dims.size(), 1U) << "it still says that its sizes are open";
  }
  EXPECT_DOUBLE_EQ(whole, 1);
  EXPECT_EQ(Names(AtWeightedSizes(Rows("n: 3..=4"), {})), (std::vector<std::string>{"n=4", "n=3"}))
      << "what stands for most comes last";
  EXPECT_EQ(Names(AtWeightedSizes(Rows("n: 32..=512 step 32"), {})),
            (std::vector<std::string>{"n=32", "n=128", "n=320", "n=512"}));
  EXPECT_EQ(Names(AtWeightedSizes(Rows("n"), {})).back(), "n=128") << "nobody chose its end";
}

TEST(ShapeWeights, CountAsTheyAreGiven) {
  const auto parse = [](std::initializer_list<const char*> texts) {
    std::vector<ShapeWeight> out;
    for (const char* t : texts) out.push_back(ShapeWeight::Parse(t).value());
    return out;
  };
  const auto all = AtWeightedSizes(Rows("n: 1..=64"), parse({"n=7,m=2:3", "n=64", "n=7,m=5:2"}));
  EXPECT_EQ(Names(all), (std::vector<std::string>{"n=64", "n=7"}))
      << "what does not mention m has one size where m differs; the heaviest comes last";
  EXPECT_DOUBLE_EQ(all.back().weight, 5.0 / 6);
  // Others than the range has are nobody's.
  EXPECT_EQ(Names(AtWeightedSizes(Rows("n: 8..=64 step 8"), parse({"n=9", "n=72", "n=16"}))),
            (std::vector<std::string>{"n=16"}));
  EXPECT_EQ(AtWeightedSizes(Rows("n: 8..=64 step 8"), parse({"n=9"})).size(), 4U);
}

TEST(ShapeWeights, OfFixedSizesThereIsTheRegion) {
  const auto all = AtWeightedSizes(Rows("n: 1..=64", "5"), {});
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].name, "");
  EXPECT_TRUE(all[0].region.dims.empty());
}

}  // namespace
}  // namespace tenon::plan
