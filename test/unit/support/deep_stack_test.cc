#include "support/deep_stack.h"

#include <gtest/gtest.h>

#include <array>
#include <stdexcept>

namespace tenon {
namespace {

// A recursion that cannot be made a loop: every level reads its own array after the next one.
int64_t Sum(int64_t depth) {
  std::array<volatile int64_t, 64> level;
  level[0] = depth;
  const int64_t below = depth == 0 ? 0 : Sum(depth - 1);
  return below + level[0];
}

TEST(OnDeepStack, HoldsDeepRecursion) {
  const int64_t depth = 100'000;  // at 512 bytes and more a level: several stacks of 8 MiB
  int64_t sum = 0;
  OnDeepStack([&] { sum = Sum(depth); });
  EXPECT_EQ(sum, depth * (depth + 1) / 2);
}

TEST(OnDeepStack, RethrowsAndNests) {
  EXPECT_THROW(OnDeepStack([] { OnDeepStack([] { throw std::runtime_error("deep"); }); }),
               std::runtime_error);
}

}  // namespace
}  // namespace tenon
