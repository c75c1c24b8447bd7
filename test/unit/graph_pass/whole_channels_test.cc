// Images of few channels, on a machine whose launches take no time: all windows are many then.
#include "graph/pass/whole_channels.h"

#include <gtest/gtest.h>

#include "graph/text.h"
#include "graph/verify.h"
#include "support/graph_eval.h"

namespace tenon::graph {
namespace {

Machine Gpu() {
  Machine machine = Machine::Of(Target::Parse("cuda -arch=sm_80").value());
  machine.launch_seconds = 0;
  return machine;
}

// y = conv(x, w) with so many channels in so many groups, 5 x 4 places and 3 x 2 taps.
Graph Convolution(int64_t channels, int64_t groups) {
  std::string weights;
  for (int64_t i = 0; i < 8 * channels / groups * 6; ++i)
    weights += (i ? ", " : "") + std::to_string(i % 7 - 3);
  const std::string c = std::to_string(channels), own = std::to_string(channels / groups);
  Expected<Graph> g =
      Parse("graph @g(%0 \"x\": f32[2, " + c + ", 5, 4]) {\n  %1 \"w\": f32[8, " + own +
                ", 3, 2] = const [" + weights +
                "]\n  %2 \"y\": f32[2, 8, 3, 3] = conv(%0, %1) {group: " + std::to_string(groups) +
                ", strides: [2, 2], pads: [1, 1, 1, 1]}\n  return %2 \"y\"\n}\n",
            "few");
  EXPECT_TRUE(g) << ToString(g.errors());
  return *g;
}

TEST(WholeChannels, KeepTheMeaning) {
  const Machine machine = Gpu();
  for (const int64_t channels : {1, 3, 7}) {
    const Graph before = Convolution(channels, 1);
    const Graph after = WholeChannels(before, {&machine});
    ASSERT_TRUE(Verify(after)) << Print(after);
    EXPECT_EQ(after.nodes.size(), before.nodes.size() + 2) << Print(after);
    const std::vector<Array> inputs = RandomInputs(before, 3);
    const std::vector<Array> a = GraphEvaluator(before).Run(inputs);
    const std::vector<Array> b = GraphEvaluator(after).Run(inputs);
    ASSERT_EQ(a[0].data.size(), b[0].data.size());
    for (size_t i = 0; i < a[0].data.size(); ++i)
      EXPECT_NEAR(a[0].data[i], b[0].data[i], 1e-6) << channels << " " << i;
  }
}

TEST(WholeChannels, LeaveWhatIsWholeOrInGroups) {
  const Machine machine = Gpu(), slow = Machine::Of(Target::Parse("cuda -arch=sm_80").value());
  const Machine cpu = Machine::Of(Target::Parse("llvm -mcpu=core-avx2").value());
  const Graph few = Convolution(3, 1);
  EXPECT_TRUE(StructuralEqual(WholeChannels(few, {&cpu}), few));
  EXPECT_TRUE(StructuralEqual(WholeChannels(few, {&slow}), few));  // a launch takes longer
  for (const Graph& g : {Convolution(8, 1), Convolution(4, 2)})
    EXPECT_TRUE(StructuralEqual(WholeChannels(g, {&machine}), g));
}

}  // namespace
}  // namespace tenon::graph
