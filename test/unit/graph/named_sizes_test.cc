// Sizes by names of their own: what is named, what they stand for, and what stays as it is.
#include "graph/named_sizes.h"

#include <gtest/gtest.h>

#include "graph/dims.h"
#include "graph/text.h"
#include "ir/print.h"

namespace tenon::graph {
namespace {

Graph Parsed(const std::string& text) {
  auto g = Parse(text, "t");
  EXPECT_TRUE(g) << ToString(g.errors());
  return *std::move(g);
}

// "size0 = select(…); …" and the region.
std::string NamedText(const std::string& text) {
  const auto named = NameSizes(Parsed(text));
  if (!named) return "none";
  std::string out;
  for (const Dim& d : named->region.dims) {
    const auto value = named->values.find(d.var.get());
    if (value == named->values.end()) continue;
    out += d.var->name + " = " + DimText(value->second) + "\n";
  }
  return out + Print(named->region);
}

TEST(NamedSizes, OfTwoThatBroadcast) {
  const std::string text =
      NamedText(R"(graph @g<m: 1..=100, n: 1..=50>(%0 "a": f32[m, 4], %1 "b": f32[n, 4]) {
  %2: f32[select(m == 1, n, m), 4] = add(%0, %1)
  %3: f32[select(m == 1, n, m), 4] = relu(%2)
  return %3 "y"
})");
  EXPECT_NE(text.find("size0 = select(m == 1, n, m)\n"), std::string::npos) << text;
  EXPECT_NE(text.find(", size0>"), std::string::npos) << text;
  EXPECT_NE(text.find("f32[size0, 4] = relu("), std::string::npos) << text;
  EXPECT_EQ(text.find("f32[select("), std::string::npos) << text;
}

TEST(NamedSizes, OfManyPaddings) {
  const std::string text = NamedText(
      R"(graph @g<n: 1..=100, a: 0..=9, b: 0..=9, size0: 1..=9>(%0 "n": f32[n], %1 "a": f32[a], %2 "b": f32[b], %3 "x": f32[n + a - b, size0]) {
  %4: f32[n + a - b, size0] = relu(%3)
  return %4 "y"
})");
  EXPECT_NE(text.find("size0_ = n + a - b\n"), std::string::npos) << text;
  EXPECT_NE(text.find("f32[size0_, size0] = relu("), std::string::npos) << text;
  EXPECT_NE(text.find("size0_: 0.."), std::string::npos) << text;  // it may be 0
}

// What its operands are made of proves where a window or a part lies.
TEST(NamedSizes, SumsAndSizesThatAreCutByNumbersStay) {
  EXPECT_EQ(
      NamedText(
          R"(graph @g<n: 4..=100, a: 0..=9, b: 0..=9>(%0 "n": f32[n], %1 "a": f32[a], %2 "b": f32[b], %3 "x": f32[n + a + b], %4 "z": f32[n - 3]) {
  %5: f32[n + a + b] = relu(%3)
  %6: f32[n - 3] = relu(%4)
  return %5 "y", %6 "w"
})"),
      "none");
}

// The size has a name: it is not negative. Where the part begins is another matter.
TEST(NamedSizes, ChoicesThatMayBeNegativeStay) {
  const std::string text =
      NamedText(R"(graph @g<n: 1..=100, m: 1..=100>(%0 "x": f32[n], %1 "b": f32[m]) {
  %2: f32[n - max(min(n, select(n < m, n * 2 - m, n - m)), 0)] = slice(%0) {starts: [max(min(n, select(n < m, n * 2 - m, n - m)), 0)], sizes: [n - max(min(n, select(n < m, n * 2 - m, n - m)), 0)], steps: [1]}
  return %2 "y"
})");
  EXPECT_NE(text.find("f32[size0] = slice(%0) {starts: [max(min(n, select(n < m, n * 2 - m, n - "
                      "m)), 0)], sizes: [size0]"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace tenon::graph
