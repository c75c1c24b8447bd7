#include "measure/paired_test.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tenon::measure {

namespace {

// Of the normal distribution: a probability of 5e-4 beyond it, for each look and side.
constexpr double kQuantile = 3.29;
// A candidate that is slower by so much need not be known well.
constexpr double kClearlySlower = 0.05;
// Looks that can only rule a candidate out.
constexpr size_t kFirstLook = 24, kSecondLook = 48;
// So many times longer goes on what is worth it.
constexpr double kPatience = 8;

// From the first look that may call it faster on, by the square root of two: looks are cheap, but
// each may err.
bool IsLook(size_t pairs, size_t least) {
  if (pairs == kFirstLook || pairs == kSecondLook) return true;
  const double turns = 2 * std::log2(static_cast<double>(pairs) / static_cast<double>(least));
  const double look = static_cast<double>(least) * std::exp2(std::round(turns) / 2);
  return pairs >= least && static_cast<size_t>(std::llround(look)) == pairs;
}

}  // namespace

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<long>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

Interval MedianInterval(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  const double reach = kQuantile * std::sqrt(n) / 2;
  const auto low = static_cast<size_t>(std::max(0.0, std::floor(n / 2 - reach)));
  const auto high = static_cast<size_t>(std::min(n - 1, std::ceil(n / 2 + reach)));
  return {values[low], values[high]};
}

void PairedTest::Add(double log_ratio) {
  log_ratios_.push_back(log_ratio);
  if (verdict_ != Verdict::kOpen) return;
  if (pairs() == options_.most_pairs || IsLook(pairs(), options_.least_pairs)) Look();
}

void PairedTest::Look() {
  const Interval now = interval();
  const double threshold = -2 * options_.noise;
  if (pairs() < options_.least_pairs) {
    if (now.low > kClearlySlower) verdict_ = Verdict::kNotFaster;
    return;
  }
  if (now.high < threshold) {
    verdict_ = Verdict::kFaster;
  } else if (now.low > threshold || pairs() >= options_.most_pairs) {
    verdict_ = Verdict::kNotFaster;
  }
}

// Pairs that ended before a look may still show it: long kernels have few.
Verdict PairedTest::Close() {
  if (verdict_ != Verdict::kOpen) return verdict_;
  const bool shown = pairs() >= kFirstLook && interval().high < -2 * options_.noise;
  verdict_ = shown ? Verdict::kFaster : Verdict::kNotFaster;
  return verdict_;
}

void PairedRace::Count(const Pair& pair) {
  incumbent_.push_back(pair.incumbent);
  log_ratios_.push_back(
      std::log(std::max(pair.candidate, 1e-12) / std::max(pair.incumbent, 1e-12)));
  test_.Add(log_ratios_.back());
}

void PairedRace::Add(double incumbent, double candidate, bool disturbed) {
  if (!disturbed || takes_all_) return Count({incumbent, candidate});
  aside_.push_back({incumbent, candidate});
  if (aside_.size() >= options_.least_pairs) TakeAll();
}

void PairedRace::TakeAll() {
  takes_all_ = true;
  for (const Pair& pair : std::exchange(aside_, {})) Count(pair);
}

bool PairedRace::GoesOn(double taken) {
  if (test_.verdict() != Verdict::kOpen) return false;
  if (taken <= seconds_) return true;
  if (test_.pairs() < kFirstLook) {
    TakeAll();
    if (test_.verdict() != Verdict::kOpen) return false;
  }
  if (test_.pairs() == 0) return true;
  if (test_.pairs() >= options_.least_pairs || taken > kPatience * seconds_) return false;
  if (options_.noise <= 0) return true;
  const double threshold = -2 * options_.noise;
  const bool shown = test_.pairs() >= kFirstLook && test_.interval().high < threshold;
  return !shown && test_.median() < threshold;
}

double NoiseOf(const std::vector<double>& log_ratios) {
  return std::max(std::abs(Median(log_ratios)), MedianInterval(log_ratios).HalfWidth());
}

}  // namespace tenon::measure
