#include "support/flat_map.h"

#include <gtest/gtest.h>

#include <random>
#include <unordered_map>

namespace tenon {
namespace {

struct Spread {
  uint64_t operator()(uint64_t key) const { return SpreadBits(key); }
};
// All keys want one of four places.
struct Clash {
  uint64_t operator()(uint64_t key) const { return key % 4; }
};

template <class Hash>
void CompareWithStd(int rounds) {
  std::mt19937 random(7);
  FlatMap<uint64_t, int, Hash> map;
  for (int round = 0; round < rounds; ++round) {
    std::unordered_map<uint64_t, int> want;
    const int inserts = static_cast<int>(random() % 200);
    for (int i = 0; i < inserts; ++i) {
      const uint64_t key = random() % 150;
      auto [value, added] = map.Insert(key);
      EXPECT_EQ(added, !want.contains(key));
      if (added) {
        EXPECT_EQ(*value, 0);
        *value = want[key] = i + 1;
      }
      EXPECT_EQ(*value, want[key]);
    }
    EXPECT_EQ(map.size(), want.size());
    for (uint64_t key = 0; key < 150; ++key) {
      const int* value = map.Find(key);
      ASSERT_EQ(value != nullptr, want.contains(key));
      if (value) {
        EXPECT_EQ(*value, want[key]);
      }
    }
    map.Clear();
    EXPECT_EQ(map.size(), 0u);
  }
}

TEST(FlatMap, HoldsWhatAMapHolds) { CompareWithStd<Spread>(300); }
TEST(FlatMap, HoldsItWhereKeysMeet) { CompareWithStd<Clash>(60); }

TEST(FlatMap, HasNothingAtFirst) {
  FlatMap<uint64_t, int, Spread> map;
  EXPECT_EQ(map.Find(0), nullptr);
  map.Clear();
  EXPECT_EQ(map.Find(0), nullptr);
}

}  // namespace
}  // namespace tenon
