#include "ops/reduce_schedule.h"

#include <algorithm>

#include "ops/scheduling.h"

namespace tenon::ops {

namespace {

class ReductionScheduler {
 public:
  ReductionScheduler(Schedule& s, const Machine& machine, const std::string& block)
      : s_(s), block_(block), lanes_(machine.Lanes(WrittenType(s, block))) {}

  bool Run() {
    const Names spatial = s_.GetSpatialLoops(block_);
    Names reduce = s_.GetReduceLoops(block_);
    // Loops of one iteration run along nothing, and make no parts.
    std::erase_if(reduce, [&](const std::string& l) { return s_.GetExtent(l) == 1; });
    if (lanes_ < 2 || reduce.empty() || !ReadsNeighbours(s_, block_, reduce.back(), reduce) ||
        (!spatial.empty() && ReadsNeighbours(s_, block_, spatial.back(), reduce))) {
      return false;
    }
    if (const Names all = Concat({spatial, s_.GetReduceLoops(block_)}); all.size() > 1)
      s_.Reorder(all);
    const std::string parts = SplitParts(reduce);
    if (parts.empty()) return ReduceLanes(block_);
    const std::string part = s_.RFactor(parts, -1);
    if (!s_.ok() || !ReduceLanes(part)) return false;
    // The parts in turn, likewise where they are many; of an open size they are few as a rule.
    if (!ReduceLanes(block_, 1)) {
      const Names left = s_.GetSpatialLoops(block_);
      s_.DecomposeReduction(block_, s_.GetReduceLoops(block_)[0]);
      ParallelOuter(s_, left);
    }
    return s_.ok();
  }

 private:
  // The loop over parts of what is reduced for one result, or "" where that is not long.
  std::string SplitParts(const Names& reduce) {
    constexpr int64_t kPart = 4096;  // elements: what is read while the nearest cache holds it
    const Names run = RunThroughMemory(s_, block_, reduce);
    const std::string along = run.size() > 1 ? s_.Fuse(run) : run[0];
    const int64_t most = MostTripsTogether(s_, s_.GetReduceLoops(block_));
    if (most >= 0 && most < 2 * kPart) return "";
    const std::string part =
        run.size() < reduce.size() ? reduce[0] : s_.Split(along, {-1, kPart})[0];
    // An open size of which no bound is known may turn out to be one part.
    return s_.GetExtent(part) == 1 ? "" : part;
  }

  // Additions take four cycles and two start in each: four vectors hide most of it.
  static constexpr int64_t kMostVectors = 4;

  // What is no longer than a vector takes a shorter one.
  int64_t WidthFor(int64_t extent) const {
    constexpr int64_t kSteps = 4, kFewest = 4;
    int64_t width = lanes_;
    while (width >= extent && width > kFewest) width /= 2;
    while (width < kMostVectors * lanes_ && width * kSteps <= extent) width *= 2;
    return width;
  }

  // Partial results in vectors, and what they come to, for each result of the block. False where
  // its innermost loop is no longer than the shortest vector. `of_open`: how many vectors where the
  // loop's extent has no bound.
  bool ReduceLanes(const std::string& block, int64_t of_open = kMostVectors) {
    const std::string along = s_.GetReduceLoops(block).back();
    // Of an open size the most that there may be: all of it in one step leaves no loop to go in.
    const int64_t most = MostTrips(s_, along);
    const int64_t width = most < 0 ? of_open * lanes_ : WidthFor(most);
    if (most >= 0 && most <= width) return false;
    const std::string lane = s_.Split(along, {-1, width})[1];
    const std::string partial = s_.RFactor(lane, -1);
    if (!s_.ok()) return false;
    s_.SetScope(WrittenBuffer(s_, partial), Scope::kRegister);
    const Names outer = s_.GetSpatialLoops(block);
    const std::string at = outer.empty() ? "" : outer.back();
    if (!at.empty()) s_.ComputeAt(partial, at);
    const InnerLoops in = LoopsInside(s_, partial, at);
    if (!s_.ok()) return false;
    s_.Reorder(Concat({in.reduce, {in.spatial.back()}}));
    s_.Vectorize(s_.GetLoops(s_.DecomposeReduction(partial, in.reduce[0])).back());
    s_.Vectorize(in.spatial.back());
    const std::string across = s_.GetReduceLoops(block).back();
    s_.DecomposeReduction(block, across);
    s_.Vectorize(across);
    ParallelOuter(s_, outer);
    return true;
  }

  Schedule& s_;
  const std::string& block_;
  const int64_t lanes_;
};

}  // namespace

bool ScheduleReduction(Schedule& s, const Machine& machine, const std::string& block) {
  Schedule tried = s;
  if (!ReductionScheduler(tried, machine, block).Run()) return false;
  s = std::move(tried);
  return true;
}

}  // namespace tenon::ops
