#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "runtime/core/query.h"
#include "tenon/kernel_abi.h"
#include "testing.h"

namespace tenon::runtime {
namespace {

TEST(Instances, AnIdleArenaIsUsedAgain) {
  tn_instances state{};
  void* first = tn_core_arena_acquire(&state, 1000);
  ASSERT_NE(first, nullptr);
  tn_core_arena_release(&state, first);
  EXPECT_EQ(tn_core_arena_acquire(&state, 1000), first);
  EXPECT_NE(tn_core_arena_acquire(&state, 1000), first);
}

TEST(Instances, SizesAndAlignments) {
  tn_instances state{};
  for (int64_t bytes :
       {int64_t{0}, int64_t{1}, int64_t{63}, int64_t{64}, int64_t{4096}, int64_t{4097},
        (int64_t{2} << 20) - 1, int64_t{2} << 20, (int64_t{2} << 20) + 1, int64_t{5} << 20}) {
    auto* arena = static_cast<char*>(tn_core_arena_acquire(&state, bytes));
    ASSERT_NE(arena, nullptr);
    uintptr_t alignment = bytes >= int64_t{2} << 20 ? uintptr_t{2} << 20 : 64;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(arena) % alignment, 0u) << bytes;
    memset(arena, 0xab, static_cast<size_t>(bytes));
    tn_core_arena_release(&state, arena);
  }
}

TEST(Instances, GrowToTheLargestRequest) {
  tn_instances state{};
  void* small = tn_core_arena_acquire(&state, 100);
  tn_core_arena_release(&state, small);
  void* large = tn_core_arena_acquire(&state, 1 << 20);
  void* second = tn_core_arena_acquire(&state, 100);  // made as large as the largest
  memset(second, 1, 1 << 20);
  tn_core_arena_release(&state, large);
  tn_core_arena_release(&state, second);
  EXPECT_EQ(state.largest, 1 << 20);
  std::set<void*> both = {large, second};
  EXPECT_TRUE(both.count(tn_core_arena_acquire(&state, 1 << 20)));
  EXPECT_TRUE(both.count(tn_core_arena_acquire(&state, 1 << 20)));
}

TEST(Instances, MoreThanThereAreSlots) {
  tn_instances state{};
  constexpr int kCount = 3 * TN_INSTANCE_SLOTS;
  std::set<void*> made;
  for (int i = 0; i < kCount; ++i) made.insert(tn_core_arena_acquire(&state, 100));
  EXPECT_EQ(made.size(), static_cast<size_t>(kCount));
  for (void* arena : made) tn_core_arena_release(&state, arena);
  std::set<void*> again;
  for (int i = 0; i < kCount; ++i) again.insert(tn_core_arena_acquire(&state, 100));
  EXPECT_EQ(again, made);
}

TEST(Instances, ReserveMakesDifferentOnes) {
  tn_instances state{};
  ASSERT_EQ(ReserveInstances(&state, 3, 5000), 0);
  int idle = 0;
  for (void* slot : state.slots) idle += slot != nullptr;
  EXPECT_EQ(idle, 3);
  ASSERT_EQ(ReserveInstances(&state, 2, 5000), 0);
  idle = 0;
  for (void* slot : state.slots) idle += slot != nullptr;
  EXPECT_EQ(idle, 3);
}

TEST(Instances, OutOfMemoryIsAnError) {
  tn_instances state{};
  EXPECT_EQ(tn_core_arena_acquire(&state, int64_t{1} << 60), nullptr);
  EXPECT_EQ(LastErrorText(), "MemoryError: out of memory: an arena of 1152921504606846976 bytes");
  EXPECT_EQ(tn_core_arena_acquire(&state, -1), nullptr);
  EXPECT_NE(tn_core_arena_acquire(&state, 100), nullptr);  // and is forgotten
}

TEST(Instances, OneBorrowerEach) {
  tn_instances state{};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&state, t] {
      for (int i = 0; i < 2000; ++i) {
        int64_t bytes = 64 + 64 * (i % 7);
        auto* arena = static_cast<char*>(tn_core_arena_acquire(&state, bytes));
        memset(arena, t, static_cast<size_t>(bytes));
        std::this_thread::yield();
        for (int64_t b = 0; b < bytes; ++b) ASSERT_EQ(arena[b], t);
        tn_core_arena_release(&state, arena);
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace tenon::runtime
