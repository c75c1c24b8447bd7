// Lowering networks: one function per distinct kernel, weights computed apart, equal ones once.
#include "graph/lower/lower.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "graph/text.h"
#include "ir/visit.h"
#include "loop/print.h"
#include "loop/verify.h"
#include "plan/passes.h"
#include "support/launches.h"

namespace tenon::graph {
namespace {

using tenon::testing::Launches;

const Machine& Cpu() {
  static const Machine kMachine = Machine::Of(Target::Parse("llvm -mcpu=core-avx2").value());
  return kMachine;
}

Graph Passed(const std::string& text, const std::vector<const char*>& passes) {
  Expected<Graph> g = Parse(text, "test");
  EXPECT_TRUE(g) << (g ? "" : ToString(g.errors()));
  if (!g) return {};
  for (const char* name : passes) *g = FindAnyGraphPass(name)->run(*g, {&Cpu()});
  return *g;
}

LoweredNetwork MustLower(const Graph& g, const std::string& name = "main") {
  Expected<LoweredNetwork> network = Lower(g, {&Cpu(), &Cpu(), name});
  EXPECT_TRUE(network) << (network ? "" : ToString(network.errors()));
  if (!network) return {};
  for (const Module* m : {&network->module, &network->prepare}) {
    Status ok = Verify(*m, Stage::kSchedulable);
    EXPECT_TRUE(ok) << ToString(ok.errors()) << Print(*m);
  }
  return std::move(*network);
}

TEST(Lower, EqualKernelsAreOneFunction) {
  const LoweredNetwork network = MustLower(Passed(R"(graph @g(%0 "x": f32[4, 8]) {
  %1: f32[4, 8] = exp(%0)
  %2: f32[4, 8] = exp(%1)
  %3: f32[4, 8] = exp(%2)
  %4: f32[4, 8] = exp(%3)
  %5: f32[4, 8] = tanh(%4)
  return %5 "y"
})",
                                                  {}));
  // The first one reads an argument, which is aligned to its element only; the others are equal.
  const std::vector<std::string> launches = Launches(network.module, "main");
  ASSERT_EQ(launches.size(), 5u);
  EXPECT_EQ(launches[1], launches[2]);
  EXPECT_EQ(launches[2], launches[3]);
  EXPECT_NE(launches[0], launches[1]);
  EXPECT_NE(launches[3], launches[4]);
  EXPECT_EQ(network.kernels.size(), 3u);
  EXPECT_EQ(network.module.funcs.size(), 4u);
  int64_t total = 0;
  for (const KernelInfo& k : network.kernels) {
    EXPECT_EQ(k.launches, std::count(launches.begin(), launches.end(), k.name)) << k.name;
    EXPECT_TRUE(network.module.Find(k.name)) << k.name;
    total += k.launches;
  }
  EXPECT_EQ(total, 5);
}

TEST(Lower, KernelsOfOtherConstantsAreOthers) {
  const LoweredNetwork network = MustLower(Passed(R"(graph @g(%0 "x": f32[8]) {
  %1: f32[] = const [2]
  %2: f32[] = const [3]
  %3: f32[8] = exp(%0)
  %4: f32[8] = mul(%3, %1)
  %5: f32[8] = mul(%4, %2)
  %6: f32[8] = mul(%5, %1)
  %7: f32[8] = exp(%6)
  return %7 "y"
})",
                                                  {}));
  const std::vector<std::string> launches = Launches(network.module, "main");
  ASSERT_EQ(launches.size(), 5u);
  EXPECT_NE(launches[1], launches[2]);
  EXPECT_EQ(launches[1], launches[3]);
}

// A plan's variants are kernels of their own; dims say which one is launched, and reports count the
// one of typical sizes.
TEST(Lower, VariantsAreBranches) {
  const LoweredNetwork network = MustLower(Passed(R"(graph @g<m: 1..=20>(%0 "x": f32[m, 8]) {
  %1 "w": f32[8, 2] = const [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]
  %2 "arranged": f32[8, 2] layout (d0, d1) -> (d1 / 8 size 1, d0 size 8, d1 % 8 size 8) = reshape(%1) {shape: [8, 2]}
  %3: f32[m, 2] = matmul(%0, %2) plan "packed_matmul" layout {nv: 1} when [m <= 1] schedule {tile_rows: 1, row_block: 1, parallel_loops: 0} when [8 <= m && m <= 9] schedule {tile_rows: 5, row_block: 1, parallel_loops: 0} schedule {tile_rows: 8, row_block: 1, parallel_loops: 3} seconds 1.25e-06
  return %3 "y"
})",
                                                  {}));
  const Func main = network.module.Find("main");
  const auto* weights = As<Alloc>(main->body);
  ASSERT_TRUE(weights);
  const auto* first = As<If>(weights->body);
  ASSERT_TRUE(first) << Print(main);
  EXPECT_EQ(Print(first->condition), "m <= 1");
  EXPECT_TRUE(As<Launch>(first->then_body));
  const auto* second = As<If>(first->else_body);
  ASSERT_TRUE(second);
  EXPECT_EQ(Print(second->condition), "8 <= m && m <= 9");
  const auto* last = As<Launch>(second->else_body);
  ASSERT_TRUE(last);
  ASSERT_EQ(network.kernels.size(), 3u);
  for (const KernelInfo& k : network.kernels) {
    EXPECT_EQ(k.launches, k.name == last->kernel ? 1 : 0) << k.name;
    EXPECT_GT(k.seconds, 0) << k.name;
  }
}

// Kernels for one size of the map, at either end of its range, leave out taps that meet nothing.
TEST(Lower, VariantsOfOneSizeKnowIt) {
  Graph g = Passed(R"(graph @g<h: 1..=4 step 2>(%0 "x": f32[1, 16, h, 8]) {
  %1: f32[1, 1, 1, 1] = const [1]
  %2 "w": f32[16, 1, 7, 1] = expand(%1) {shape: [16, 1, 7, 1]}
  %3: f32[1, 16, h, 8] = conv(%0, %2) {group: 16, pads: [3, 0, 3, 0]}
  return %3 "y"
})",
                   {"plan_groups"});
  const Expr h = g.dims[0].var;
  const auto conv = std::find_if(g.nodes.begin(), g.nodes.end(),
                                 [](const Node& n) { return n.op == OpKind::kConv; });
  ASSERT_NE(conv, g.nodes.end());
  Plan plan = *conv->plan;
  ASSERT_EQ(plan.algorithm, "depthwise_conv");
  const Variant all = plan.variants.back();
  // Sizes are 1 and 3; the last condition says nothing.
  plan.variants = {{Le(h, IndexConst(2)), all.schedule},
                   {Le(IndexConst(3), h), all.schedule},
                   {Lt(h * h, IndexConst(17)), all.schedule},
                   all};
  conv->plan = std::make_shared<const Plan>(std::move(plan));
  const LoweredNetwork network = MustLower(g);
  std::vector<std::string> taps;
  for (const std::string& name : Launches(network.module, "main")) {
    const std::string text = Print(network.module.Find(name));
    if (text.find("fma") == std::string::npos && text.find(" * in1") == std::string::npos) continue;
    for (const char* count : {"0..7", "0..5"}) {
      if (text.find(count) != std::string::npos) taps.emplace_back(count);
    }
    taps.emplace_back("kernel");
  }
  EXPECT_EQ(taps, (std::vector<std::string>{"kernel", "0..5", "kernel", "0..7", "kernel", "0..7",
                                            "kernel"}));
}

TEST(Lower, VariantsThatDoNotFitAreErrors) {
  Expected<LoweredNetwork> network =
      Lower(Passed(R"(graph @g<m: 1..=20>(%0 "x": f32[m, 8], %1 "w": f32[8, 2]) {
  %2: f32[m, 2] = matmul(%0, %1) "product" plan "definition" when [m <= 1] schedule {tile_rows: 1} seconds 1e-06
  return %2 "y"
})",
                   {}),
            {&Cpu(), &Cpu(), "main"});
  ASSERT_FALSE(network);
  EXPECT_NE(ToString(network.errors()).find("'product'"), std::string::npos)
      << ToString(network.errors());
}

constexpr const char* kPrepared = R"(graph @g(%0 "x": f32[3, 4]) {
  %1 "w": f32[4, 2] = const [1, 2, 3, 4, 5, 6, 7, 8]
  %2 "s": f32[2] = const [10, 20]
  %3 "scaled": f32[4, 2] = mul(%1, %2)
  %4 "root": f32[4, 2] = sqrt(%3)
  %5: f32[3, 2] = matmul(%0, %4)
  %6: f32[3, 2] = add(%5, %2)
  return %6 "y"
})";

TEST(Lower, WhatWeightsAloneDecideIsPrepared) {
  const LoweredNetwork network = MustLower(Passed(kPrepared, {"fuse"}));
  // At run time: one kernel of the product and the sum.
  puts(Print(network.module).c_str());
  EXPECT_EQ(Launches(network.module, "main").size(), 1u);
  ASSERT_EQ(network.weights.size(), 2u);
  const auto prepared = std::find_if(network.weights.begin(), network.weights.end(),
                                     [](const Weight& w) { return !w.prepare.empty(); });
  ASSERT_NE(prepared, network.weights.end());
  EXPECT_EQ(prepared->name, "root");
  EXPECT_EQ(prepared->sources.size(), 2u);
  EXPECT_FALSE(prepared->source);
  ASSERT_TRUE(network.prepare.Find(prepared->prepare));
  EXPECT_FALSE(Launches(network.prepare, prepared->prepare).empty());
  for (const Weight& w : network.weights) {
    EXPECT_EQ(w.offset % 64, 0u) << w.name;
    EXPECT_LE(w.offset + w.bytes, network.weights_bytes) << w.name;
  }
  for (const auto& [name, f] : network.prepare.funcs) {
    if (f->func_kind == FuncKind::kHost) EXPECT_EQ(name, prepared->prepare);
  }
}

TEST(Lower, WhatNoWeightDecidesIsNotPrepared) {
  const LoweredNetwork network =
      MustLower(Passed(R"(graph @g(%0 "x": f32[2, 2], %1 "w": f32[2, 2]) {
  %2: f32[2, 2] = sqrt(%1)
  %3: f32[2, 2] = matmul(%0, %2)
  return %3 "y"
})",
                       {}));
  EXPECT_TRUE(network.prepare.funcs.empty());
  EXPECT_TRUE(network.weights.empty());
  EXPECT_EQ(network.weights_bytes, 0u);
}

// A table whose rows are looked up, and which a product multiplies by, transposed.
TEST(Lower, ATransposeThatIsTheSameMemoryHasNoPlaceOfItsOwn) {
  const auto weights = [](const std::string& layout) {
    return MustLower(Passed(R"(graph @g(%0 "i": i64[3]) {
  %1 "table": f32[4, 2] = const [1, 2, 3, 4, 5, 6, 7, 8]
  %2 "turned": f32[2, 4])" + layout +
                                R"( = transpose(%1) {perm: [1, 0]}
  %3: f32[3, 2] = gather(%1, %0) {axis: 0}
  %4: f32[3, 4] = matmul(%3, %2)
  return %4 "y"
})",
                            {}))
        .weights.size();
  };
  EXPECT_EQ(weights(" layout (d0, d1) -> (d1 size 4, d0 size 2)"), 1u);
  EXPECT_EQ(weights(""), 2u);
}

// Two convolutions share their weights: these are arranged once, whatever arranges them.
TEST(Lower, EqualTransformsOfOneSourceAreDoneOnce) {
  const char text[] = R"(graph @g(%0 "a": f32[1, 8, 4, 4], %1 "b": f32[1, 8, 4, 4]) {
  %2: f32[1, 8, 1, 1] = const [1, -1, 2, -2, 3, -3, 4, -4]
  %3 "w": f32[16, 8, 3, 3] = expand(%2) {shape: [16, 8, 3, 3]}
  %4: f32[1, 16, 4, 4] = conv(%0, %3) {pads: [1, 1, 1, 1]}
  %5: f32[1, 16, 4, 4] = conv(%1, %3) {pads: [1, 1, 1, 1]}
  %6: f32[1, 16, 4, 4] = add(%4, %5)
  return %6 "y"
})";
  const LoweredNetwork network = MustLower(Passed(text, {"fuse", "plan_groups"}));
  EXPECT_EQ(network.weights.size(), 1u);
  int functions = 0;
  for (const auto& [name, f] : network.prepare.funcs) functions += f->func_kind == FuncKind::kHost;
  EXPECT_EQ(functions, 1);
}

TEST(Lower, TheNameIsThatOfTheFunctionAndOfItsKernels) {
  const LoweredNetwork network = MustLower(Passed(kPrepared, {"fuse"}), "scores");
  EXPECT_FALSE(network.module.Find("main"));
  ASSERT_TRUE(network.module.Find("scores"));
  EXPECT_TRUE(network.module.Find("scores")->attrs.Get<bool>("exported", false));
  for (const KernelInfo& k : network.kernels) EXPECT_TRUE(k.name.starts_with("scores_")) << k.name;
}

TEST(Lower, InputsAndConstantsMayBeOutputs) {
  const LoweredNetwork network = MustLower(Passed(R"(graph @g(%0 "x": f32[2]) {
  %1 "c": f32[2] = const [1, 2]
  %2: f32[2] = relu(%0)
  return %0 "same", %1 "constant", %2 "y", %2 "again"
})",
                                                  {}));
  EXPECT_EQ(network.module.Find("main")->num_outputs, 4);
  EXPECT_EQ(Launches(network.module, "main").size(), 4u);  // three copies and the operator
}

// What they show is computed where the output lies.
TEST(Lower, ViewsAreNoKernels) {
  const char graph[] = R"(graph @g(%0 "x": f32[2, 3, 4]) {
  %1: f32[6, 4] = reshape(%0) {shape: [6, 4]}
  %2: f32[6, 4] = softmax(%1) {axis: 1}
  %3: f32[2, 3, 4] = reshape(%2) {shape: [2, 3, 4]}
  %4: f32[24] = reshape(%3) {shape: [24]}
  return %4 "y"
})";
  const LoweredNetwork network = MustLower(Passed(graph, {"plan_groups"}));
  EXPECT_EQ(Launches(network.module, "main").size(), 1u);
  PreOrder(network.module.Find("main")->body, [](const NodeRef& n) {
    EXPECT_FALSE(IsA<Alloc>(n));
    return true;
  });
}

TEST(Lower, SameInputSameText) {
  const Graph g = Passed(kPrepared, {"fuse"});
  const LoweredNetwork a = MustLower(g), b = MustLower(g);
  EXPECT_EQ(Print(a.module), Print(b.module));
  EXPECT_EQ(Print(a.prepare), Print(b.prepare));
}

}  // namespace
}  // namespace tenon::graph
