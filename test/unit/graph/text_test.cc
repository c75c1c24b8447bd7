// Printing and parsing graphs: round trips, and what the parser says about broken text.
#include "graph/text.h"

#include <gtest/gtest.h>

namespace tenon::graph {
namespace {

Graph MustParse(const std::string& text) {
  Expected<Graph> g = Parse(text, "t");
  EXPECT_TRUE(g) << (g ? "" : ToString(g.errors())) << text;
  return g ? std::move(*g) : Graph();
}

void ExpectRoundTrip(const std::string& text) {
  const Graph g = MustParse(text);
  const std::string printed = Print(g);
  const Graph again = MustParse(printed);
  std::string where;
  EXPECT_TRUE(StructuralEqual(g, again, &where)) << where << "\n" << printed;
  EXPECT_EQ(Print(again), printed);
}

std::string FirstError(const std::string& text) {
  Expected<Graph> g = Parse(text, "t");
  return g ? "parsed" : g.errors()[0].ToString();
}

TEST(GraphText, RoundTripsDimsNamesMetadataAndConstants) {
  ExpectRoundTrip(R"(
graph @"a net"<n: 1..=64 step 2, m>(%0 "x": f32[n, 3, 8, 8], %5 "in \"2\"": i64[m, 2]) {
  metadata "author" "somebody\nelse"
  metadata "k" ""
  require [n * 2 <= 64, m == n]
  %1 "w": f32[4, 3, 1, 1] = const [1, 2, 3, 4, 5, 6, -7.5, 1e-07, 9, inf, -inf, 12]
  %2: f32[2] = const hex "0000c07f0100807f"
  %3: bool[2] = const [1, 0]
  %4: u8[3] = const [0, 255, 7]
  %6: f32[n, 4, 8, 8] = conv(%0, %1)
  return %6 "y", %0 "same", %2 "nans", %3 "bools", %4 "bytes", %5 "five"
}
)");
}

TEST(GraphText, RoundTripsLayoutsPlacesRegionsAndAbsentOperands) {
  ExpectRoundTrip(R"(
graph @g<n>(%0 "x": f32[n, 16, 8, 8], %1 "z": f32[n, 16, 8, 8]) {
  %2: f32[n, 16, 8, 8] layout (a, b, c, d) -> (a, b / 8, c, d, b % 8) = relu(%0) "node 1"
  %3 "p": f32[n, 16, 10, 8] = pad(%2, _) {pads: [0, 0, 1, 0, 0, 0, 1, 0], mode: "reflect"}
  %4: f32[n, 16, 8, 8] on device 0, %5 "second": f32[n, 16, 8, 8] = fused(%2, %1) region(%0: f32[n, 16, 8, 8] layout (a, b, c, d) -> (a, b / 8, c, d, b % 8), %1: f32[n, 16, 8, 8]) {
    %2: f32[n, 16, 8, 8] = relu(%0)
    %3: f32[n, 16, 8, 8] on device 0 = add(%2, %1)
    return %3 "r", %2 "s"
  }
  return %4 "y", %5 "q", %3 "p"
}
)");
}

TEST(GraphText, LeavesOutDefaultsAndFillsThemIn) {
  const Graph g = MustParse(R"(graph @g(%0 "x": f32[1, 2, 6, 6]) {
  %1: f32[1, 2, 4, 4] = max_pool(%0) {kernel: [3, 3]}
  return %1 "y"
})");
  EXPECT_EQ(g.nodes[0].attrs.GetInts("strides"), (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(g.nodes[0].attrs.GetInts("pads"), (std::vector<int64_t>{0, 0, 0, 0}));
  EXPECT_NE(Print(g).find("max_pool(%0) {kernel: [3, 3]}\n"), std::string::npos) << Print(g);
}

TEST(GraphText, EqualityIgnoresInnerNamesAndSeesEverythingElse) {
  const std::string text = R"(graph @g<n>(%0 "x": f32[n, 4]) {
  %1 "w": f32[4] = const [1, 2, 3, 4]
  %2 "a": f32[n, 4] = add(%0, %1)
  %3 "b": f32[n, 4] = softmax(%2) {axis: 1}
  return %3 "y"
})";
  const Graph g = MustParse(text);
  auto changed = [&](std::string from, std::string to) {
    std::string other = text;
    for (size_t at = 0; (at = other.find(from, at)) != std::string::npos; at += to.size())
      other.replace(at, from.size(), to);
    return StructuralEqual(g, MustParse(other));
  };
  EXPECT_TRUE(changed("\"a\"", "\"other\""));
  EXPECT_TRUE(changed("n", "n"));
  EXPECT_FALSE(changed("[1, 2, 3, 4]", "[1, 2, 3, 5]"));
  EXPECT_FALSE(changed("axis: 1", "axis: 0"));
  EXPECT_FALSE(changed("add", "sub"));
  EXPECT_FALSE(changed("add(%0, %1)", "add(%1, %0)"));
  EXPECT_FALSE(changed("<n>", "<n: 1..=8>"));
  EXPECT_FALSE(changed("\"y\"", "\"z\""));
}

TEST(GraphText, ErrorsAreLocated) {
  EXPECT_EQ(FirstError(""),
            "t:1:1: error: expected 'graph' at the start of a graph but got the end of the text");
  EXPECT_EQ(
      FirstError("graph @g(%0 \"x\": f32[4]) {\n  %1: f32[4] = rellu(%0)\n  return %1 \"y\"\n}"),
      "t:2:16: error: expected an operator or 'const' but got 'rellu'");
  EXPECT_EQ(
      FirstError("graph @g(%0 \"x\": f32[4]) {\n  %1: f32[4] = relu(%7)\n  return %1 \"y\"\n}"),
      "t:2:21: error: %7 is not defined before it is used");
  EXPECT_EQ(
      FirstError(
          "graph @g(%0 \"x\": f32[4]) {\n  %1: f32[4] = relu(%0) {axis: 1}\n  return %1 \"y\"\n}"),
      "t:2:26: error: relu has no attribute axis");
  EXPECT_EQ(
      FirstError("graph @g(%0 \"x\": f32[4]) {\n  %1: f32[4] = softmax(%0)\n  return %1 \"y\"\n}"),
      "t:2:16: error: softmax needs the attribute axis");
  EXPECT_EQ(
      FirstError(
          "graph @g(%0 \"x\": f32[4]) {\n  %1: f32[4] = const @\"w\"+0\n  return %1 \"y\"\n}"),
      "t:2:22: error: no weight files are at hand to read this constant from");
  EXPECT_EQ(
      FirstError("graph @g(%0 \"x\": f32[4]) {\n  %1: f32[5] = relu(%0)\n  return %1 \"y\"\n}"),
      "t: node 0 (relu): error: expected its output to be f32[4], but got f32[5]");
}

TEST(GraphText, BoundsNesting) {
  std::string text = "graph @g(%0 \"x\": f32[4]) {\n";
  for (int i = 0; i < 100; ++i) text += "%1: f32[4] = fused(%0) region(%0: f32[4]) {\n";
  EXPECT_NE(FirstError(text).find("expected regions nested at most 16 deep"), std::string::npos)
      << FirstError(text);
}

}  // namespace
}  // namespace tenon::graph
