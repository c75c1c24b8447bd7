#include "graph/pass/flush_subnormals.h"

#include <gtest/gtest.h>

#include <cmath>

#include "graph/text.h"
#include "graph/verify.h"
#include "support/graph_eval.h"

namespace tenon::graph {
namespace {

// The pass on a graph for a CPU.
struct Flushed {
  explicit Flushed(const std::string& text) : before(Parse(text, "network").value()) {
    const Machine machine = Machine::Of(Target::Parse("llvm -mcpu=x86-64-v3").value());
    after = FlushSubnormals(before, {&machine});
    EXPECT_TRUE(Verify(after)) << Print(after);
  }
  Graph before, after;
};

// Two products of x, with weights at both sides of the least normal number.
TEST(FlushSubnormals, WhatASubnormalFactorAddsIsBelowAll) {
  const Flushed network(R"(graph @g(%0 "x": f32[3, 4]) {
  %1 "w": f32[4, 4] = const [1.1754942e-38, -1e-45, 0, 2, 1.1754944e-38, nan, -1.1754942e-38, -0.5, 1e-20, -3, 1, -inf, 1e-30, 2, 4, 8]
  %2 "s": f32[4, 1] = const [1, 1, 1e-20, 1]
  %3 "ws": f32[4, 4] = mul(%1, %2)
  %4 "y": f32[3, 4] = matmul(%0, %1)
  %5 "z": f32[3, 4] = matmul(%0, %3)
  return %4 "y", %5 "z"
}
)");
  EXPECT_EQ(network.after.nodes.size(), network.before.nodes.size() + 6) << Print(network.after);
  const std::vector<Array> inputs = RandomInputs(network.before, 3);
  const std::vector<Array> a = GraphEvaluator(network.before).Run(inputs);
  const std::vector<Array> b = GraphEvaluator(network.after).Run(inputs);
  for (size_t result = 0; result < 2; ++result) {
    for (size_t i = 0; i < a[result].data.size(); ++i) {
      const double want = a[result].data[i], got = b[result].data[i];
      if (std::isfinite(want)) {
        EXPECT_NEAR(want, got, 1e-36) << result << " " << i;
      } else {
        EXPECT_EQ(std::isnan(want), std::isnan(got)) << result << " " << i;
      }
    }
  }
}

// What is written is looked at; of what is computed no product of two ordinary numbers is
// subnormal.
TEST(FlushSubnormals, OrdinaryWeightsStay) {
  const auto with = [](const std::string& weight, const std::string& factor) {
    return Flushed("graph @g(%0 \"x\": f32[1, 1]) {\n  %1 \"w\": f32[1, 1] = const [" + weight +
                   "]\n  %2 \"f\": f32[1, 1] = mul(%1, %1)\n  %3 \"y\": f32[1, 1] = matmul(%0, %" +
                   factor + ")\n  return %3 \"y\"\n}\n")
        .after.nodes.size();
  };
  EXPECT_EQ(with("1.1e-38", "1"), 4U);
  EXPECT_EQ(with("1.2e-38", "1"), 1U);
  EXPECT_EQ(with("1e-19", "2"), 5U);
  EXPECT_EQ(with("1.1e-19", "2"), 2U);
}

}  // namespace
}  // namespace tenon::graph
