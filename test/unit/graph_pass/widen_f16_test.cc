// What is rounded where, and that it means the same.
#include "graph/pass/widen_f16.h"

#include <gtest/gtest.h>

#include "graph/text.h"
#include "graph/verify.h"
#include "support/graph_eval.h"

namespace tenon::graph {
namespace {

const Machine& Cpu() {
  static const Machine machine = Machine::Of(Target::Parse("llvm -mcpu=core-avx2").value());
  return machine;
}

Graph Verified(const std::string& text) {
  Expected<Graph> g = Parse(text, "halves");
  EXPECT_TRUE(g) << ToString(g.errors());
  Graph after = WidenF16(*g, {&Cpu()});
  EXPECT_TRUE(Verify(after)) << Print(after);
  return after;
}

// The same, and it means what it did.
Graph Widened(const std::string& text) {
  const Expected<Graph> g = Parse(text, "halves");
  Graph after = Verified(text);
  const std::vector<Array> inputs = RandomInputs(*g, 3);
  const std::vector<Array> a = GraphEvaluator(*g).Run(inputs);
  const std::vector<Array> b = GraphEvaluator(after).Run(inputs);
  for (size_t k = 0; k < a.size(); ++k) {
    EXPECT_EQ(a[k].data.size(), b[k].data.size());
    for (size_t i = 0; i < a[k].data.size(); ++i)
      EXPECT_NEAR(a[k].data[i], b[k].data[i], 0.01 * std::max(1.0, std::abs(a[k].data[i]))) << i;
  }
  return after;
}

int Count(const Graph& g, OpKind op, DType type) {
  int count = 0;
  for (const Node& n : g.nodes) count += n.op == op && g.type(n.outputs[0]).dtype == type;
  return count;
}

const DType kF16 = DType::Float(16), kF32 = DType::Float(32);

TEST(WidenF16, RoundsOnceAtTheEnd) {
  const Graph g = Widened(R"(graph @g(%0 "x": f16[3, 5]) {
  %1 "k": f16[] = const [0.125]
  %2 "a": f16[3, 5] = mul(%0, %1)
  %3 "b": f16[3, 5] = exp(%2)
  %4 "t": f16[5, 3] = transpose(%3) {perm: [1, 0]}
  %5 "y": f16[5, 3] = add(%4, %4)
  return %5 "y"
}
)");
  EXPECT_EQ(Count(g, OpKind::kCast, kF16), 1) << Print(g);
  EXPECT_EQ(Count(g, OpKind::kCast, kF32), 1) << Print(g);  // of x; the number is one of f32
  EXPECT_EQ(Count(g, OpKind::kTranspose, kF32), 1) << Print(g);
}

TEST(WidenF16, LeavesWhatNobodyRounds) {
  const Graph g = Widened(R"(graph @g(%0 "x": f16[3, 5]) {
  %1 "t": f16[5, 3] = transpose(%0) {perm: [1, 0]}
  %2 "r": f16[5, 3] = relu(%1)
  %3 "y": f16[5, 3] = sqrt(%2)
  return %2 "r", %3 "y"
}
)");
  EXPECT_EQ(Count(g, OpKind::kCast, kF32) + Count(g, OpKind::kCast, kF16), 0) << Print(g);
}

TEST(WidenF16, RoundsBeforeWhatJumps) {
  const Graph g = Verified(R"(graph @g(%0 "x": f16[3, 5]) {
  %1 "a": f16[3, 5] = add(%0, %0)
  %2 "f": f16[3, 5] = floor(%1)
  %3 "i": i64[3] = arg_reduce(%1) {kind: "max", axis: 1}
  %4 "w": f32[3, 5] = cast(%1) {to: "f32"}
  %5 "n": i32[3, 5] = cast(%1) {to: "i32"}
  return %2 "f", %3 "i", %4 "w", %5 "n"
}
)");
  EXPECT_EQ(Count(g, OpKind::kFloor, kF16), 1) << Print(g);
  EXPECT_EQ(Count(g, OpKind::kAdd, kF32), 1) << Print(g);
  for (const Node& n : g.nodes) {
    if (n.op == OpKind::kArgReduce) EXPECT_EQ(g.type(n.inputs[0]).dtype, kF16) << Print(g);
    if (n.op != OpKind::kCast) continue;
    // What was rounded is read by integers, not by the floats.
    if (g.value(n.outputs[0]).name == "n") EXPECT_EQ(g.type(n.inputs[0]).dtype, kF16) << Print(g);
  }
  EXPECT_EQ(g.type(g.outputs[2]).dtype, kF32);
  EXPECT_NE(g.node(g.value(g.outputs[2]).producer).op, OpKind::kCast) << Print(g);
}

std::string Product(int rows) {
  std::string weights;
  for (int i = 0; i < 20; ++i) weights += (i ? ", " : "") + std::to_string(i % 7 - 3);
  const std::string m = std::to_string(rows);
  return "graph @g(%0 \"x\": f16[" + m + ", 4]) {\n  %1 \"w\": f16[4, 5] = const [" + weights +
         "]\n  %2 \"e\": f16[" + m + ", 4] = exp(%0)\n  %3 \"p\": f16[" + m +
         ", 5] = matmul(%2, %1)\n  %4 \"y\": f16[" + m + ", 5] = exp(%3)\n  return %4 \"y\"\n}\n";
}

TEST(WidenF16, KeepsWeightsOfFewRows) {
  for (const auto& [rows, type] : {std::pair{1, kF16}, {16, kF16}, {17, kF32}}) {
    const Graph g = Widened(Product(rows));
    for (const Node& n : g.nodes) {
      if (n.op != OpKind::kMatMul) continue;
      EXPECT_EQ(g.type(n.inputs[1]).dtype, type) << Print(g);
      EXPECT_EQ(g.type(n.outputs[0]).dtype, kF32) << Print(g);
    }
  }
}

TEST(WidenF16, LeavesGraphsOfOtherTypesAndMachines) {
  const Machine gpu = Machine::Of(Target::Parse("cuda -arch=sm_80").value());
  const Graph halves = *Parse(Product(17), "halves");
  EXPECT_TRUE(StructuralEqual(WidenF16(halves, {&gpu}), halves));
}

}  // namespace
}  // namespace tenon::graph
