// Chains of split, fuse and reorder leave no hole in their axes, and where a box is said to be
// filled, enumeration finds every point of it and nothing else.
#include "arith/filled_box.h"

#include <gtest/gtest.h>

#include <set>

#include "chains.h"

namespace tenon {
namespace {

using fuzz::Chain;
using fuzz::Loop;
using Point = std::vector<int64_t>;

std::optional<std::vector<ExprInterval>> Filled(Chain& chain, const std::vector<Expr>& indices) {
  Iterations it{indices, {}, chain.guards()};
  for (const Loop& l : chain.loops()) it.domain[l.var.get()] = {IndexConst(0), l.extent - 1};
  return FilledBox(std::move(it), std::vector<Expr>(indices.size(), IndexConst(1)),
                   chain.analyzer());
}

TEST(FilledBox, ChainsFillTheirAxes) {
  int refused = 0;
  std::string first;
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    Chain chain(seed, false, 4);
    if (Filled(chain, chain.values())) continue;
    if (refused++ == 0) first = "seed " + std::to_string(seed) + ": " + chain.Text();
  }
  // Remainders of remainders, guarded in between, may be beyond what is shown.
  EXPECT_LE(refused, 20) << first;
}

// Indices that are what axes make of each other: some have holes, some do not.
std::vector<Expr> Mixed(Chain& chain) {
  std::vector<Expr> out;
  for (const Expr& v : chain.values()) {
    switch (chain.Below(6)) {
      case 0: out.push_back(v * 2); break;
      case 1: out.push_back(v / 2); break;
      case 2: out.push_back(v % 3); break;
      case 3: out.push_back(out.empty() ? v : out.back() * 2 + v); break;
      case 4: out.push_back(out.empty() ? v : out.back() + v); break;
      default: out.push_back(v);
    }
  }
  return out;
}

TEST(FilledBox, EveryPointIsThere) {
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    Chain chain(seed, false);
    const std::vector<Expr> indices = Mixed(chain);
    const auto box = Filled(chain, indices);
    const auto points = chain.Points(1);
    if (!box || !points) continue;
    std::set<Point> found;
    for (const auto& p : *points) {
      Point at;
      for (const Expr& e : indices) at.push_back(*fuzz::Evaluate(e, p));
      found.insert(at);
    }
    int64_t volume = 1;
    for (size_t d = 0; d < indices.size(); ++d) {
      const auto lo = AsInt((*box)[d].min), hi = AsInt((*box)[d].max);
      ASSERT_TRUE(lo && hi) << chain.Text();
      volume *= *hi - *lo + 1;
      for (const Point& at : found) ASSERT_TRUE(*lo <= at[d] && at[d] <= *hi) << chain.Text();
    }
    EXPECT_EQ(static_cast<int64_t>(found.size()), volume)
        << "seed " << seed << ": " << chain.Text();
  }
}

}  // namespace
}  // namespace tenon
