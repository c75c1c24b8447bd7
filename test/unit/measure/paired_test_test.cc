// The sequential test on noise that is made up: how often it calls a kernel faster that is not, and
// how soon it sees one that is.
#include "measure/paired_test.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace tenon::measure {
namespace {

// Ratios of two kernels on a busy machine: half a percent of noise, and one pair in ten disturbed
// by a half on either side.
class Noise {
 public:
  explicit Noise(unsigned seed) : random_(seed) {}
  double Pair(double log_ratio) {
    double x = log_ratio + 0.005 * normal_(random_);
    if (random_() % 10 == 0) x += random_() % 2 == 0 ? 0.4 : -0.4;
    return x;
  }

 private:
  std::mt19937 random_;
  std::normal_distribution<double> normal_;
};

Verdict RunTest(double log_ratio, const PairedOptions& options, unsigned seed, size_t* pairs) {
  Noise noise(seed);
  PairedTest test(options);
  while (test.verdict() == Verdict::kOpen) test.Add(noise.Pair(log_ratio));
  *pairs = test.pairs();
  return test.verdict();
}

TEST(PairedTest, RarelyCallsAnEqualKernelFaster) {
  int faster = 0;
  for (unsigned seed = 0; seed < 2000; ++seed) {
    size_t pairs = 0;
    faster += RunTest(0, {}, seed, &pairs) == Verdict::kFaster ? 1 : 0;
    EXPECT_LE(pairs, 400U);
  }
  EXPECT_LE(faster, 20);  // one in a hundred
}

TEST(PairedTest, SeesAPercentBeyondTwiceTheNoise) {
  int faster = 0;
  for (unsigned seed = 0; seed < 500; ++seed) {
    size_t pairs = 0;
    faster += RunTest(-0.02, {.noise = 0.005}, seed, &pairs) == Verdict::kFaster ? 1 : 0;
    EXPECT_GE(pairs, 100U);
  }
  EXPECT_GE(faster, 495);
}

TEST(PairedTest, DoesNotCallFasterWhatIsWithinTwiceTheNoise) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    size_t pairs = 0;
    EXPECT_EQ(RunTest(-0.005, {.noise = 0.005}, seed, &pairs), Verdict::kNotFaster) << seed;
  }
}

TEST(PairedTest, LeavesAClearLoserEarly) {
  size_t pairs = 0;
  EXPECT_EQ(RunTest(0.5, {}, 1, &pairs), Verdict::kNotFaster);
  EXPECT_EQ(pairs, 24U);
}

TEST(PairedTest, ClosesWithWhatThereIs) {
  PairedTest few({});
  for (int i = 0; i < 10; ++i) few.Add(-1);
  EXPECT_EQ(few.verdict(), Verdict::kOpen);
  EXPECT_EQ(few.Close(), Verdict::kNotFaster);  // ten pairs prove nothing
  PairedTest enough({});
  for (int i = 0; i < 30; ++i) enough.Add(-1);
  EXPECT_EQ(enough.Close(), Verdict::kFaster);
}

// A kernel of ten milliseconds on a machine that is never quiet: every pair is disturbed.
PairedRace RunLong(double log_ratio, double noise, bool disturbed, double* taken) {
  constexpr double kSeconds = 0.010;
  PairedRace race({.noise = noise}, 0.2);
  Noise other(3);
  for (*taken = 0; race.GoesOn(*taken); *taken += 2 * kSeconds)
    race.Add(kSeconds, kSeconds * std::exp(other.Pair(log_ratio)), disturbed);
  return race;
}

TEST(PairedRace, GoesOnWithALongKernelThatIsAhead) {
  for (const bool disturbed : {false, true}) {
    double taken = 0;
    PairedRace race = RunLong(-0.1, 0.01, disturbed, &taken);
    EXPECT_TRUE(race.IsFaster()) << disturbed;
    EXPECT_GE(race.log_ratios().size(), 24U);
    EXPECT_EQ(race.aside(), 0U);
    EXPECT_LE(taken, 8 * 0.2);
  }
}

TEST(PairedRace, LeavesALongKernelThatIsNotAhead) {
  double taken = 0;
  PairedRace race = RunLong(0.02, 0.01, true, &taken);
  EXPECT_FALSE(race.IsFaster());
  EXPECT_LE(taken, 0.25);
}

TEST(PairedRace, FindsOutItsNoiseFromEnoughPairs) {
  double taken = 0;
  const PairedRace race = RunLong(0, 0, true, &taken);
  EXPECT_GE(race.log_ratios().size(), 24U);
}

TEST(PairedRace, LeavesDisturbedPairsAsideWhereOthersAreEnough) {
  PairedRace race({.noise = 0.01}, 1);
  double taken = 0;
  for (int i = 0; race.GoesOn(taken); ++i, taken += 0.02) {
    const bool disturbed = i % 2 == 1;
    race.Add(1, disturbed ? 2 : 1.0, disturbed);
  }
  EXPECT_EQ(Median(race.log_ratios()), 0);
  EXPECT_GT(race.aside(), 0U);
  EXPECT_FALSE(race.IsFaster());
}

// The interval covers the middle of what the numbers are drawn from.
TEST(PairedTest, IntervalCoversTheMedian) {
  int outside = 0;
  for (unsigned seed = 0; seed < 2000; ++seed) {
    Noise noise(seed);
    std::vector<double> values;
    for (int i = 0; i < 100; ++i) values.push_back(noise.Pair(0));
    const Interval interval = MedianInterval(values);
    outside += interval.low > 0 || interval.high < 0 ? 1 : 0;
  }
  EXPECT_LE(outside, 10);
}

TEST(PairedTest, MedianOfFewNumbers) {
  EXPECT_EQ(Median({3}), 3);
  EXPECT_EQ(Median({1, 4}), 2.5);
  EXPECT_EQ(Median({5, 1, 3}), 3);
  EXPECT_EQ(NoiseOf({0, 0, 0}), 0);
}

}  // namespace
}  // namespace tenon::measure
