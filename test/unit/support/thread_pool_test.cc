#include "support/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/check.h"

namespace tenon {
namespace {

TEST(ParallelFor, RunsEveryIndexOnce) {
  for (int64_t n : {0, 1, 2, 7, 1000}) {
    for (int jobs : {-1, 0, 1, 2, 8}) {
      std::vector<int> count(static_cast<size_t>(n));
      ParallelFor(n, jobs, [&](int64_t i) { ++count[static_cast<size_t>(i)]; });
      EXPECT_EQ(count, std::vector<int>(static_cast<size_t>(n), 1));
    }
  }
}

TEST(ParallelFor, RethrowsTheLowestFailure) {
  for (int jobs : {1, 2, 8}) {
    std::string message;
    try {
      ParallelFor(1000, jobs, [](int64_t i) {
        if (i % 7 == 3) throw std::runtime_error(std::to_string(i));
      });
    } catch (const std::runtime_error& e) {
      message = e.what();
    }
    EXPECT_EQ(message, "3");
  }
}

TEST(ParallelFor, CarriesInternalErrors) {
  EXPECT_THROW(ParallelFor(4, 2, [](int64_t i) { TN_CHECK(i < 0); }), InternalError);
}

TEST(ParallelFor, Nests) {
  std::atomic<int> sum = 0;
  ParallelFor(4, 3,
              [&](int64_t) { ParallelFor(5, 3, [&](int64_t j) { sum += static_cast<int>(j); }); });
  EXPECT_EQ(sum, 40);
}

TEST(AvailableCpus, IsPositive) { EXPECT_GE(AvailableCpus(), 1); }

}  // namespace
}  // namespace tenon
