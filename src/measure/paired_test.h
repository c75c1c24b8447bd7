// Which of two kernels is faster, from times that were taken side by side. On a machine that does
// other things too, times of one kernel spread by half; the ratio of two that were taken one after
// the other does not, for what disturbs one disturbs both. So what is looked at is the ratio
// of each pair, and of all pairs the median, which pairs with a disturbance in between do not move.
//
// The test is sequential: it looks at the pairs after 24, 48, 100, 141, … of them and stops once
// they are enough. The interval for the median is that of order statistics, which asks nothing of
// the noise's shape; each look is wrong once in some two thousand times on either side, all looks
// together less than once in a hundred.
#pragma once

#include <cstddef>
#include <vector>

namespace tenon::measure {

/// Of the logarithm of candidate's over incumbent's time.
struct Interval {
  double low = 0, high = 0;
  double HalfWidth() const { return (high - low) / 2; }
};

/// The middle one of at least one number, or the mean of the two in the middle.
double Median(std::vector<double> values);
/// Where the median of what the numbers are drawn from is, almost surely; all numbers where they
/// are too few to say less.
Interval MedianInterval(std::vector<double> values);

struct PairedOptions {
  double noise = 0;          // of the kernel against itself, as a logarithm of ratios (NoiseOf); 0:
                             // not known yet
  size_t least_pairs = 100;  // before a candidate may be called faster
  size_t most_pairs = 400;
};

enum class Verdict {
  kOpen,       // more pairs are needed
  kFaster,     // the candidate, by more than twice the noise
  kNotFaster,  // that is ruled out, or could not be shown
};

class PairedTest {
 public:
  explicit PairedTest(const PairedOptions& options) : options_(options) {}

  /// The logarithm of one pair's ratio, candidate over incumbent.
  void Add(double log_ratio);
  /// What the pairs so far say; it stays as it is once it is decided.
  Verdict verdict() const { return verdict_; }
  /// The same where no more pairs will come: never kOpen.
  Verdict Close();

  size_t pairs() const { return log_ratios_.size(); }
  /// Of at least one pair.
  double median() const { return Median(log_ratios_); }
  Interval interval() const { return MedianInterval(log_ratios_); }

 private:
  void Look();

  const PairedOptions options_;
  std::vector<double> log_ratios_;
  Verdict verdict_ = Verdict::kOpen;
};

/// A race: which of its pairs count, and how long it goes on. Where a thread was put off its CPU
/// within a pair, that is put aside; but on a machine that is never quiet there are no others, so
/// what was put aside counts where the time ends with few, or where there is much of it. A kernel
/// of ten milliseconds makes few pairs in any time: one that is ahead when it is over, or one whose
/// noise is not known yet, goes on until there are enough to say so.
class PairedRace {
 public:
  /// `seconds` are for timing; a race that is worth it takes up to eight times as many.
  PairedRace(const PairedOptions& options, double seconds)
      : options_(options), seconds_(seconds), test_(options) {}

  /// Seconds of one call of each.
  void Add(double incumbent, double candidate, bool disturbed);
  /// Whether another pair is wanted, so many seconds after the start. At least one counts when not.
  bool GoesOn(double taken);
  /// After the last pair.
  bool IsFaster() { return test_.Close() == Verdict::kFaster; }

  /// Of the pairs that count: times of the incumbent, and the logarithms of ratios.
  const std::vector<double>& incumbent_seconds() const { return incumbent_; }
  const std::vector<double>& log_ratios() const { return log_ratios_; }
  size_t aside() const { return aside_.size(); }  // that did not count

 private:
  struct Pair {
    double incumbent, candidate;
  };
  void Count(const Pair& pair);
  void TakeAll();

  const PairedOptions options_;
  const double seconds_;
  PairedTest test_;
  std::vector<double> incumbent_, log_ratios_;
  std::vector<Pair> aside_;
  bool takes_all_ = false;
};

/// How far pairs of a kernel and itself lead astray: their median's distance from 0 and half of its
/// interval, whichever is more.
double NoiseOf(const std::vector<double>& log_ratios);

}  // namespace tenon::measure
