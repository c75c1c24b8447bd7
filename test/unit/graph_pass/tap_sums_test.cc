// Few taps as sums, where threads run together: the same numbers, turned or not.
#include "graph/pass/tap_sums.h"

#include <gtest/gtest.h>

#include "graph/text.h"
#include "graph/verify.h"
#include "support/graph_eval.h"

namespace tenon::graph {
namespace {

Graph FewTaps(int64_t taps, bool turned, const std::string& attrs, int64_t places) {
  std::string weights;
  for (int64_t i = 0; i < 3 * taps; ++i) weights += (i ? ", " : "") + std::to_string(i % 5 - 2);
  const std::string k = std::to_string(taps), t = std::to_string(places);
  const std::string x = turned ? "[2, 9, 3]" : "[2, 3, 9]";
  const std::string turn = turned ? "  %3: f32[2, 3, 9] = transpose(%0) {perm: [0, 2, 1]}\n" : "";
  Expected<Graph> g =
      Parse("graph @g(%0 \"x\": f32" + x + ") {\n  %1 \"w\": f32[3, 1, " + k + "] = const [" +
                weights + "]\n  %2 \"b\": f32[3] = const [4, 5, 6]\n" + turn +
                "  %4 \"y\": f32[2, 3, " + t + "] = conv(" + (turned ? "%3" : "%0") +
                ", %1, %2) {group: 3" + attrs + "}\n  return %4 \"y\"\n}\n",
            "taps");
  EXPECT_TRUE(g) << ToString(g.errors());
  return *g;
}

TEST(TapSums, KeepTheMeaning) {
  const Machine machine = Machine::Of(Target::Parse("cuda -arch=sm_80").value());
  for (const bool turned : {false, true}) {
    for (const Graph& before :
         {FewTaps(1, turned, "", 9), FewTaps(2, turned, ", dilations: [3]", 6),
          FewTaps(3, turned, ", pads: [0, 2]", 9), FewTaps(4, turned, ", pads: [3, 0]", 9)}) {
      const Graph after = TapSums(before, {&machine});
      ASSERT_TRUE(Verify(after)) << Print(after);
      for (const Node& n : after.nodes) EXPECT_NE(n.op, OpKind::kConv) << Print(after);
      const std::vector<Array> inputs = RandomInputs(before, 3);
      const std::vector<Array> a = GraphEvaluator(before).Run(inputs);
      const std::vector<Array> b = GraphEvaluator(after).Run(inputs);
      ASSERT_EQ(a[0].data.size(), b[0].data.size());
      for (size_t i = 0; i < a[0].data.size(); ++i)
        EXPECT_NEAR(a[0].data[i], b[0].data[i], 1e-5) << Print(before) << i;
    }
  }
}

}  // namespace
}  // namespace tenon::graph
