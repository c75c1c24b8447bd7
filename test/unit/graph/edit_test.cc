// Editing helpers and the verifier.
#include "graph/edit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "graph/text.h"
#include "graph/verify.h"

namespace tenon::graph {
namespace {

Graph MustParse(const std::string& text) {
  Expected<Graph> g = Parse(text, "t");
  EXPECT_TRUE(g) << (g ? "" : ToString(g.errors()));
  return g ? std::move(*g) : Graph();
}

// Makes every reader of `from` read `to`.
void Redirect(Graph& g, ValueId from, ValueId to) {
  for (Node& n : g.nodes) std::replace(n.inputs.begin(), n.inputs.end(), from, to);
  std::replace(g.outputs.begin(), g.outputs.end(), from, to);
}

constexpr const char* kDiamond = R"(graph @g<n>(%0 "x": f32[n, 4], %1 "unused": f32[2]) {
  %2 "w": f32[4] = const [1, 2, 3, 4]
  %3 "a": f32[n, 4] = add(%0, %2)
  %4 "dead": f32[n, 4] = exp(%3)
  %5 "b": f32[n, 4] = relu(%3)
  %6 "c": f32[n, 4] = mul(%5, %3)
  return %6 "y", %3 "z"
})";

TEST(GraphEdit, UsersAndCounts) {
  const Graph g = MustParse(kDiamond);
  const ValueId a = g.nodes[0].outputs[0];
  EXPECT_EQ(Users(g)[static_cast<size_t>(a)], (std::vector<NodeId>{1, 2, 3}));
  EXPECT_EQ(UseCounts(g)[static_cast<size_t>(a)], 4);
}

TEST(GraphEdit, CompactDropsWhatNothingNeedsAndKeepsInputs) {
  Graph g = MustParse(kDiamond);
  const ValueId dead = g.nodes[1].outputs[0];
  const std::vector<ValueId> ids = Compact(g);
  EXPECT_EQ(ids[static_cast<size_t>(dead)], kNoValue);
  EXPECT_EQ(g.nodes.size(), 3u);
  EXPECT_EQ(g.inputs.size(), 2u);
  EXPECT_TRUE(Verify(g));
  Redirect(g, g.nodes[0].outputs[0], g.inputs[0]);
  Compact(g);
  EXPECT_EQ(g.nodes.size(), 2u);
  EXPECT_TRUE(Verify(g));
  EXPECT_EQ(g.outputs[1], g.inputs[0]);
}

TEST(GraphEdit, SortIsStableAndFindsCycles) {
  Graph g = MustParse(kDiamond);
  const Graph before = g;
  EXPECT_TRUE(TopologicalSort(g));
  EXPECT_TRUE(StructuralEqual(before, g));
  std::rotate(g.nodes.begin(), g.nodes.begin() + 1, g.nodes.end());
  for (size_t n = 0; n < g.nodes.size(); ++n)
    g.value(g.nodes[n].outputs[0]).producer = static_cast<NodeId>(n);
  EXPECT_FALSE(Verify(g));
  EXPECT_TRUE(TopologicalSort(g));
  EXPECT_TRUE(Verify(g));
  g.nodes[0].inputs[0] = g.nodes[2].outputs[0];
  EXPECT_FALSE(TopologicalSort(g));
}

TEST(GraphEdit, SubstituteDimsMakesShapesStatic) {
  const Graph g = SubstituteDims(MustParse(kDiamond), {{"n", IndexConst(3)}});
  EXPECT_TRUE(g.dims.empty());
  EXPECT_EQ(g.type(g.outputs[0]).ToString(), "f32[3, 4]");
  EXPECT_TRUE(Verify(g));
}

TEST(GraphEdit, ExtractRegionMakesAFusedGroup) {
  Graph g = MustParse(kDiamond);
  std::vector<ValueId> operands;
  const std::vector<ValueId> outputs = {g.nodes[3].outputs[0]};
  Graph region = ExtractRegion(g, {2, 3}, outputs, &operands);
  EXPECT_EQ(operands, (std::vector<ValueId>{g.nodes[0].outputs[0]}));
  EXPECT_EQ(region.nodes.size(), 2u);
  Node fused{.op = OpKind::kFused, .name = "group", .inputs = operands};
  const TensorType type = g.type(outputs[0]);
  fused.regions.push_back(std::make_shared<const Graph>(std::move(region)));
  const NodeId id = g.AddNode(std::move(fused), {type});
  Redirect(g, outputs[0], g.node(id).outputs[0]);
  Compact(g);
  EXPECT_TRUE(Verify(g)) << Print(g);
  EXPECT_TRUE(Parse(Print(g))) << Print(g);
}

std::string FirstError(const Graph& g) {
  Status s = Verify(g);
  return s ? "verified" : s.errors()[0].ToString();
}

TEST(GraphVerify, EachRule) {
  const Graph good = MustParse(kDiamond);
  EXPECT_EQ(FirstError(good), "verified");
  Graph g = good;
  g.nodes[0].inputs[0] = 99;
  EXPECT_EQ(FirstError(g), "node 'a' (add): error: value id 99 is out of range");
  g = good;
  g.nodes[0].inputs[1] = kNoValue;
  EXPECT_EQ(FirstError(g), "node 'a' (add): error: input 1 is left out");
  g = good;
  g.value(g.nodes[2].outputs[0]).producer = 0;
  EXPECT_EQ(FirstError(g), "node 'b' (relu): error: output 0 names another producer");
  g = good;
  g.output_names[1] = "y";  // results are told by their order
  EXPECT_EQ(FirstError(g), "verified");
  g = good;
  g.value(g.inputs[1]).name = "x";
  EXPECT_EQ(FirstError(g), "value 1 'x': error: another input has this name");
  g = good;
  g.dims[0].min = 0;
  EXPECT_EQ(
      FirstError(g),
      "dim n: error: expected 1 ≤ min ≤ max < 2^47 and a step, but got 0..=2147483647 step 1");
  g = good;
  g.dims.clear();
  EXPECT_EQ(FirstError(g), "value 0 'x': error: dim 'n' is not declared");
  g = good;
  g.dims.push_back({.var = VarNode::Make("m")});
  EXPECT_EQ(
      FirstError(g),
      "dim m: error: no input has it as a dim and no node defines it, so its size cannot be known");
  g = good;
  g.nodes[0].attrs.Set("axis", int64_t{1});
  EXPECT_EQ(FirstError(g), "node 'a' (add): error: add has no attribute axis");
  g = good;
  g.value(2).payload = Payload::Owned({});
  EXPECT_EQ(FirstError(g), "value 2 'w': error: expected the bytes of f32[4], but got 0");
  g = good;
  g.value(g.outputs[0]).type.tensor().dtype = DType::Int(32);
  EXPECT_EQ(FirstError(g),
            "node 'c' (mul): error: expected its output to be f32[n, 4], but got i32[n, 4]");
}

TEST(GraphVerify, DefinitionsAndArity) {
  const Graph good = MustParse(kDiamond);
  Graph g = good;
  g.nodes[3].outputs[0] = g.nodes[2].outputs[0];
  g.value(g.nodes[2].outputs[0]).producer = 3;
  EXPECT_EQ(FirstError(g), "node 'b' (relu): error: output 0 names another producer");
  g = good;
  g.nodes.pop_back();
  EXPECT_EQ(FirstError(g), "value 6 'c': error: expected one definition, but got 0");
  g = good;
  std::swap(g.nodes[1], g.nodes[2]);
  for (NodeId n : {1, 2}) g.value(g.node(n).outputs[0]).producer = n;
  std::swap(g.nodes[0], g.nodes[1]);
  for (NodeId n : {0, 1}) g.value(g.node(n).outputs[0]).producer = n;
  EXPECT_EQ(FirstError(g), "node 'b' (relu): error: value 3 'a' is used before it is produced");
  g = good;
  g.nodes[0].inputs.pop_back();
  EXPECT_EQ(FirstError(g), "node 'a' (add): error: expected 2 to 2 inputs, but got 1");
  g = good;
  g.output_names.pop_back();
  EXPECT_EQ(FirstError(g), "outputs: error: expected 2 output names, but got 1");
  g = good;
  g.nodes[0].regions.push_back(std::make_shared<const Graph>());
  EXPECT_EQ(FirstError(g), "node 'a' (add): error: expected 0 regions, but got 1");
  g = good;
  g.constraints.push_back({IndexConst(1), ""});
  EXPECT_EQ(FirstError(g), "constraints: error: expected bool expressions, but got index");
}

TEST(GraphVerify, FusedNodes) {
  const Graph good = MustParse(R"(graph @g(%0 "x": f32[4]) {
  %1: f32[4] = fused(%0) "group" region(%0: f32[4]) {
    %1: f32[4] = exp(%0)
    %2: f32[4] = relu(%1)
    return %2 "r"
  }
  return %1 "y"
})");
  const std::string item = "node 'group' (fused): ";
  auto with_region = [&](const std::function<void(Graph*)>& change) {
    Graph g = good, region = *good.nodes[0].regions[0];
    change(&region);
    g.nodes[0].regions[0] = std::make_shared<const Graph>(std::move(region));
    return FirstError(g);
  };
  EXPECT_EQ(FirstError(good), "verified");
  EXPECT_EQ(with_region([](Graph* r) { r->nodes[0].inputs[0] = 9; }),
            item + "node 0 (exp): error: value id 9 is out of range");
  EXPECT_EQ(with_region([](Graph* r) {
              for (Value& v : r->values) v.type.tensor().dims = {IndexConst(5)};
            }),
            item + "error: expected input 0 of the region to be f32[4], but got f32[5]");
  EXPECT_EQ(with_region([](Graph* r) { r->AddOutput("again", 2); }),
            item + "error: expected 2 results, but got 1");
  Graph g = good;
  g.nodes[0].regions.clear();
  EXPECT_EQ(FirstError(g), item + "error: expected 1 region, but got 0");
}

TEST(Names, AreQuotedForMessages) {
  EXPECT_EQ(Quoted("a\nb\x01"), "'a\\x0ab\\x01'");
  EXPECT_EQ(Quoted(std::string(119, 'a') + "é"), "'" + std::string(119, 'a') + "…'");
  EXPECT_LT(Quoted(std::string(1 << 20, 'x')).size(), 130u);
}

}  // namespace
}  // namespace tenon::graph
