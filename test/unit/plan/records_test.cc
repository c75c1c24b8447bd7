// Measured points count before the model, on the machine and for the group that they are of.
#include "plan/records.h"

#include <gtest/gtest.h>

#include "graph/text.h"
#include "plan/passes.h"
#include "plan/region.h"
#include "plan/space.h"

namespace tenon::plan {
namespace {

constexpr const char* kProduct = R"(graph @g(%0 "x": f32[20, 8], %1 "w": f32[8, 32]) {
  %2: f32[20, 32] = matmul(%0, %1) "mm"
  %3: f32[20, 32] = fused(%2) "rest" region(%0 "a": f32[20, 32]) {
    %1: f32[] = const [2]
    %2 "b": f32[20, 32] = mul(%0, %1)
    return %2 "c"
  }
  return %3 "y"
})";

Machine MachineOf(const char* target) { return Machine::Of(Target::Parse(target).value()); }

TEST(Records, AreChosenBeforeWhatIsPredicted) {
  const Machine machine = MachineOf("llvm -mcpu=core-avx2");
  const graph::Graph g = graph::Parse(kProduct).value();
  const graph::GraphPassContext model{&machine};
  const graph::Group group = graph::GroupOf(g, *FindKernel(g, "mm"));
  const ops::Site site{group.region, group.anchor, machine};
  const AlgorithmSpace space = SpacesOf(g, group.node, model).at(0);
  // The dearest point is measured to be the fastest.
  const AlgorithmSpace::Priced& dearest = space.points.back();
  const std::string text = "# measured\n\n" +
                           Records::Line(*space.algorithm, site, dearest.point, 1.5) +
                           Records::Line(*space.algorithm, site, dearest.point, 1e-12);
  Expected<Records> records = Records::Parse(text, "records");
  ASSERT_TRUE(records) << ToString(records.errors());
  EXPECT_EQ(records->size(), 1u);
  EXPECT_EQ(records->Find(*space.algorithm, site, dearest.point), 1e-12);
  EXPECT_FALSE(records->Find(*space.algorithm, site, space.points.front().point));

  const graph::GraphPassContext measured{&machine, &*records};
  EXPECT_EQ(SpacesOf(g, group.node, measured).at(0).points.front().point, dearest.point);
  auto planned = [&](const graph::GraphPassContext& context) {
    const graph::Graph p = graph::FindAnyGraphPass("plan_groups")->run(g, context);
    return *p.node(*FindKernel(p, "mm")).plan;
  };
  EXPECT_NE(planned(model).AllChoices(), dearest.point);
  EXPECT_EQ(planned(measured).AllChoices(), dearest.point);
  EXPECT_EQ(planned(measured).seconds, 1e-12);

  // On another machine they say nothing.
  const Machine other = MachineOf("llvm -mcpu=x86-64-v4");
  EXPECT_FALSE(records->Find(*space.algorithm, {group.region, group.anchor, other}, dearest.point));
}

TEST(Records, GroupsAreKnownByWhatTheyCompute) {
  const graph::Graph g = graph::Parse(kProduct).value();
  auto key = [](const graph::Graph& in, const char* name) {
    return graph::RegionKey(graph::GroupOf(in, *FindKernel(in, name)).region);
  };
  // Printing and reading, other names and plans change nothing; other sizes do.
  const Machine machine = MachineOf("llvm -mcpu=core-avx2");
  const graph::Graph planned = graph::FindAnyGraphPass("plan_groups")->run(g, {&machine});
  const graph::Graph again = graph::Parse(graph::Print(planned)).value();
  for (const char* name : {"mm", "rest"}) EXPECT_EQ(key(again, name), key(g, name));
  std::string renamed = kProduct, wider = kProduct;
  renamed.replace(renamed.find("\"b\""), 3, "\"z\"");
  for (size_t at = 0; (at = wider.find("20, 32", at)) != std::string::npos;)
    wider.replace(at, 6, "20, 64");
  wider.replace(wider.find("8, 32"), 5, "8, 64");
  EXPECT_EQ(key(graph::Parse(renamed).value(), "rest"), key(g, "rest"));
  EXPECT_NE(key(graph::Parse(wider).value(), "mm"), key(g, "mm"));
}

TEST(Records, BadLinesAreErrorsWithTheirNumber) {
  const std::string hash(32, 'a');
  EXPECT_TRUE(Records::Parse(hash + " " + hash + " rows {} 1e-6\n", "f"));
  for (const std::string& bad :
       {std::string("x"), hash + " " + hash + " rows {}", hash + " " + hash + " rows {} zero",
        hash + " " + hash + " rows {} -1", hash + " " + hash + " rows {} inf",
        hash + " abc rows {} 1", hash + " rows {} 1", std::string("} 1"), std::string("1e-6")}) {
    const Expected<Records> records = Records::Parse("\n" + bad, "f");
    ASSERT_FALSE(records) << bad;
    EXPECT_EQ(records.errors()[0].loc.line, 2) << bad;
  }
}

}  // namespace
}  // namespace tenon::plan
