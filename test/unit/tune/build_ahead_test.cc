// Who lowers and who builds, and when.
#include "tune/build_ahead.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tune/same_kernels.h"

namespace tenon::tune {
namespace {

Expected<std::string> BuildNothing(const Module&) { return std::string("image"); }

LoweredCandidate CandidateOf(const char* dtype) {
  LoweredCandidate out;
  out.parameters.push_back({.dtype = dtype});
  return out;
}

// Four candidates wait for each other while they are lowered, and then while they are built.
TEST(BuildAhead, LowersAndBuildsOnSeveralThreads) {
  std::latch lowering(4), building(4);
  BuildAhead ahead(
      [&](const Module&) -> Expected<std::string> {
        building.arrive_and_wait();
        return std::string("image");
      },
      4);
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::vector<Building> all;
  for (int i = 0; i < 4; ++i) {
    all.push_back(ahead.Start([&]() -> Expected<LoweredCandidate> {
      {
        const std::lock_guard lock(mutex);
        threads.insert(std::this_thread::get_id());
      }
      lowering.arrive_and_wait();
      return CandidateOf("float32");
    }));
  }
  for (const Building& b : all) {
    const Expected<BuiltCandidate> built = b.Wait();
    ASSERT_TRUE(built);
    EXPECT_EQ(built->image, "image");
    ASSERT_EQ(built->parameters.size(), 1U);
    EXPECT_EQ(built->parameters[0].dtype, "float32");
  }
  EXPECT_EQ(threads.size(), 4U);
  EXPECT_FALSE(threads.contains(std::this_thread::get_id()));
}

TEST(BuildAhead, LowersForUsersInTheirThread) {
  std::atomic<int> built = 0;
  const std::thread::id here = std::this_thread::get_id();
  BuildAhead ahead(
      [&](const Module&) -> Expected<std::string> {
        EXPECT_NE(std::this_thread::get_id(), here);
        ++built;
        return std::string("image");
      },
      2);
  int lowered = 0;
  const Building b = ahead.Start(
      [&]() -> Expected<LoweredCandidate> {
        EXPECT_EQ(std::this_thread::get_id(), here);
        ++lowered;
        return LoweredCandidate{};
      },
      LoweredBy::kCaller);
  EXPECT_EQ(lowered, 1);
  EXPECT_TRUE(b.Wait());
  EXPECT_EQ(built, 1);
  EXPECT_THROW(ahead.Start([]() -> Expected<LoweredCandidate> { throw std::runtime_error("no"); },
                           LoweredBy::kCaller),
               std::runtime_error);
}

// A compiler beside a race is what it would measure.
TEST(BuildAhead, DoesNothingAheadWithoutThreads) {
  int lowered = 0, built = 0;
  BuildAhead ahead(
      [&](const Module&) -> Expected<std::string> {
        ++built;
        return std::string("image");
      },
      0);
  const auto lower = [&]() -> Expected<LoweredCandidate> {
    ++lowered;
    return CandidateOf("int8");
  };
  const Building b = ahead.Start(lower);
  const BuildAhead::Identity other = ahead.Identify(lower);
  EXPECT_EQ(lowered, 0);
  EXPECT_EQ(b.Identity().value(), IdentityOf(CandidateOf("int8")));
  EXPECT_EQ(lowered, 1);
  EXPECT_EQ(built, 0) << "which kernel it is says its schedule";
  EXPECT_TRUE(b.Wait());
  EXPECT_TRUE(b.Wait());
  EXPECT_EQ(lowered, 1);
  EXPECT_EQ(built, 1);
  EXPECT_EQ(other.get().value(), b.Identity().value());
  EXPECT_EQ(lowered, 2);
}

TEST(BuildAhead, ErrorsOfSchedulesAreTheCandidates) {
  for (const int threads : {0, 2}) {
    int built = 0;
    BuildAhead ahead(
        [&](const Module&) -> Expected<std::string> {
          ++built;
          return MakeError("no such unit");
        },
        threads);
    const Building illegal =
        ahead.Start([]() -> Expected<LoweredCandidate> { return MakeError("illegal"); });
    EXPECT_EQ(illegal.Wait().errors()[0].message, "illegal");
    EXPECT_EQ(illegal.Identity().errors()[0].message, "illegal");
    EXPECT_EQ(built, 0);
    const Building none =
        ahead.Start([]() -> Expected<LoweredCandidate> { return LoweredCandidate{}; });
    EXPECT_EQ(none.Wait().errors()[0].message, "no such unit");
    EXPECT_TRUE(none.Identity());
  }
}

// What was not begun is left, so that an end does not wait for a queue.
TEST(BuildAhead, EndsAfterWhatIsUnderWay) {
  std::atomic<int> lowered = 0;
  {
    BuildAhead ahead(BuildNothing, 2);
    for (int i = 0; i < 50; ++i) {
      ahead.Start([&]() -> Expected<LoweredCandidate> {
        ++lowered;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        return LoweredCandidate{};
      });
    }
  }
  EXPECT_LE(lowered, 4);
}

}  // namespace
}  // namespace tenon::tune
