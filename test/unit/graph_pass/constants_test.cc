// Which values a compilation computes ahead: those of constants, within bounds that are counted.
#include "graph/pass/constants.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "graph/text.h"

namespace tenon::graph {
namespace {

// The names of the values that are computed ahead.
std::string Ahead(const std::string& nodes) {
  const Expected<Graph> g = Parse(nodes, "test");
  EXPECT_TRUE(g) << (g ? "" : ToString(g.errors()));
  if (!g) return "";
  const std::vector<bool> constant = ConstantValues(*g);
  std::string out;
  for (size_t v = 0; v < g->values.size(); ++v) {
    if (constant[v] && !g->values[v].IsConstant()) out += g->values[v].name + " ";
  }
  return out;
}

// x + the product of two n x n matrices of ones.
std::string Product(int64_t n) {
  return fmt::format(R"(graph @g(%0 "x": f32[{0}, {0}]) {{
  %1: f32[] = const [1]
  %2 "ones": f32[{0}, {0}] = expand(%1) {{shape: [{0}, {0}]}}
  %3 "product": f32[{0}, {0}] = matmul(%2, %2)
  %4 "sum": f32[{0}, {0}] = add(%0, %3)
  return %4 "y"
}})",
                     n);
}

TEST(Constants, ProductsUpToABound) {
  // n³ and what it takes to read and to make the operands, against 2^33.
  EXPECT_EQ(Ahead(Product(2000)), "ones product ");
  EXPECT_EQ(Ahead(Product(2040)), "ones product ");
  EXPECT_EQ(Ahead(Product(2048)), "ones ");
  EXPECT_EQ(Ahead(Product(4000)), "ones ");
  EXPECT_EQ(Ahead(Product(4097)), "");  // 64 MiB are made of one number, and not more
}

TEST(Constants, WhatGrowsIsBounded) {
  // Nor is what is small again behind it.
  EXPECT_EQ(Ahead(R"(graph @g(%0 "x": f32[1]) {
  %1: f32[] = const [1]
  %2 "grown": f32[1073741824] = expand(%1) {shape: [1073741824]}
  %3 "last": f32[1] = slice(%2) {starts: [7], sizes: [1], steps: [1]}
  %4 "sum": f32[1] = add(%0, %3)
  return %4 "y"
})"),
            "");
}

TEST(Constants, AllTogetherAreBounded) {
  // Ten products, each within the bound of one: they run with the network, and what is small does
  // not.
  std::string text = R"(graph @g(%0 "x": f32[2]) {
  %1: f32[] = const [1]
  %2 "pair": f32[2] = expand(%1) {shape: [2]}
  %3 "ones": f32[1700, 1700] = expand(%1) {shape: [1700, 1700]}
)";
  std::string results = "%2 \"y\"";
  for (int i = 4; i < 14; ++i) {
    text += fmt::format("  %{0} \"p{0}\": f32[1700, 1700] = matmul(%3, %3)\n", i);
    results += fmt::format(", %{0} \"y{0}\"", i);
  }
  EXPECT_EQ(Ahead(text + "  return " + results + "\n}"), "pair ones ");
}

}  // namespace
}  // namespace tenon::graph
