// Chains of split, fuse and reorder: the axes' values always fix the loops' variables, whatever
// guards and open sizes came of the chain (nothing that is true is refused), and of anything else
// that is known, what FixedVars says is what enumeration says (nothing is claimed that is not so).
#include "arith/injective.h"

#include <gtest/gtest.h>

#include <map>

#include "chains.h"

namespace tenon {
namespace {

using fuzz::Assignment;
using fuzz::Chain;
using fuzz::Loop;
using Point = std::vector<int64_t>;

std::unordered_set<const VarNode*> Fixed(Chain& chain, const std::vector<Expr>& known) {
  std::vector<KnownSum> sums;
  for (const Expr& e : known) sums.push_back({e});
  return FixedVars(sums, chain.Unknown(), chain.Guards(), chain.analyzer());
}

Point At(const std::vector<Expr>& values, const Assignment& point) {
  Point out;
  for (const Expr& v : values) out.push_back(fuzz::Evaluate(v, point).value_or(-1));
  return out;
}

// What of a chain's axes is known: all, some, or what a mistaken author takes for an element.
std::vector<Expr> SomethingOf(Chain& chain) {
  std::vector<Expr> out;
  for (const Expr& v : chain.values()) {
    switch (chain.Below(5)) {
      case 0: break;
      case 1: out.push_back(v / 2); break;
      case 2: out.push_back(v % 3); break;
      case 3: out.push_back(out.empty() ? v : out.back() + v); break;
      default: out.push_back(v);
    }
  }
  return out;
}

class Chains : public ::testing::TestWithParam<bool> {};

TEST_P(Chains, AxesFixLoops) {
  // Guards, open extents and remainders of one another five deep may be beyond what is shown.
  const bool open = GetParam();
  for (const auto& [steps, refusals] :
       {std::pair(2, 0), std::pair(3, 0), std::pair(5, open ? 8 : 1)}) {
    int refused = 0;
    std::string first;
    for (uint32_t seed = 0; seed < 3000; ++seed) {
      Chain chain(seed, GetParam(), steps);
      if (Fixed(chain, chain.values()).size() == chain.loops().size()) continue;
      if (refused++ == 0) first = "seed " + std::to_string(seed) + ": " + chain.Text();
    }
    EXPECT_LE(refused, refusals) << "chains of " << steps << " steps; the first is " << first;
  }
}

TEST_P(Chains, NothingElseIsClaimed) {
  for (uint32_t seed = 0; seed < 1500; ++seed) {
    Chain chain(seed, GetParam());
    const std::vector<Expr> known = SomethingOf(chain);
    const auto fixed = Fixed(chain, known);
    if (fixed.empty()) continue;
    for (int64_t n : {1, 2, 3, 5, 8, 13}) {
      const auto points = chain.Points(n);
      if (!points) break;
      std::map<Point, const Assignment*> seen;
      for (const Assignment& p : *points) {
        const Assignment& first = *seen.try_emplace(At(known, p), &p).first->second;
        for (const VarNode* v : fixed) {
          ASSERT_EQ(first.at(v), p.at(v))
              << "seed " << seed << ": " << v->name << " of " << chain.Text();
        }
      }
      if (!GetParam()) break;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, Chains, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Open" : "Fixed"; });

}  // namespace
}  // namespace tenon
