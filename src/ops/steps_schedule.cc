#include "ops/steps_schedule.h"

#include <algorithm>

#include "ops/scheduling.h"

namespace tenon::ops {

namespace {

class StepsScheduler {
 public:
  StepsScheduler(Schedule& s, const Machine& machine, const std::string& block)
      : s_(s),
        block_(block),
        spatial_(s.GetSpatialLoops(block)),
        ordered_(s.GetOrderedLoops(block)),
        all_(s.GetLoops(block)),
        keeps_(WrittenRank(s, block) == static_cast<int64_t>(all_.size())),
        lanes_(machine.Lanes(WrittenType(s, block))) {}

  // The name of a block that went along with it, or "".
  std::string Run() {
    Names outer = spatial_;
    if (spatial_.empty()) {
      s_.SetScope(StateBuffer(s_, block_), Scope::kLocal);
    } else if (!keeps_ || all_.back() == spatial_.back()) {
      SplitVectors(&outer);
    }
    const Names order = Concat({outer, ordered_, {vectors_, vector_}});
    if (order.size() > 1) s_.Reorder(order);
    const std::string reader = TakeReader();
    if (!vectors_.empty()) s_.Unroll(vectors_);
    if (!vector_.empty()) s_.Vectorize(vector_);
    ParallelOuter(s_, outer);
    return reader;
  }

 private:
  // Several at once, where there are: lines of memory come one behind the other.
  void SplitVectors(Names* outer) {
    constexpr int64_t kMostVectors = 8, kVectors = 4;  // where it is not known how many there are
    const int64_t along = s_.GetExtent(spatial_.back());
    while (along >= 0 && along < lanes_) lanes_ /= 2;
    if (lanes_ <= 1) return;
    const int64_t several = along < 0 ? kVectors : std::min(along / lanes_, kMostVectors);
    const bool wide = keeps_ && several > 1;
    const Names split = wide ? s_.Split(spatial_.back(), {-1, several, lanes_})
                             : s_.Split(spatial_.back(), {-1, lanes_});
    outer->back() = split[0];
    vector_ = split.back();
    if (wide) vectors_ = split[1];
  }

  // Who reads what a step keeps, and nobody else does, does so right there.
  std::string TakeReader() {
    const Names readers = s_.GetConsumers(block_);
    if (!keeps_ || readers.size() != 1) return "";
    const std::string& reader = readers[0];
    if (!s_.GetReduceLoops(reader).empty() || !s_.GetOrderedLoops(reader).empty()) return "";
    Schedule tried = s_;
    tried.ReverseComputeAt(reader, ordered_.back());
    if (!tried.ok()) return "";
    if (spatial_.empty()) tried.SetScope(WrittenBuffer(tried, block_), Scope::kLocal);
    const Names inside = LoopsInside(tried, reader, ordered_.back()).spatial;
    if (!vector_.empty() && !inside.empty()) {
      std::string own = inside.back();
      if (!vectors_.empty()) {
        const Names parts = tried.Split(own, {-1, lanes_});
        tried.Unroll(parts[0]);
        own = parts[1];
      }
      tried.Vectorize(own);
    }
    if (!tried.ok()) return "";
    s_ = std::move(tried);
    return reader;
  }

  Schedule& s_;
  const std::string& block_;
  const Names spatial_, ordered_, all_;
  const bool keeps_;  // what each step leaves; else what the last one does
  int64_t lanes_;
  std::string vectors_, vector_;  // loops
};

}  // namespace

std::string ScheduleSteps(Schedule& s, const Machine& machine, const std::string& block) {
  return StepsScheduler(s, machine, block).Run();
}

static void ScheduleUpdates(Schedule& s, BlockRole role, const Machine& machine,
                            const std::string& block) {
  Names apart = s.GetSpatialLoops(block);
  std::string inside;
  if (role == BlockRole::kCounts) {
    inside = apart.back();
    apart.pop_back();
  } else if (role == BlockRole::kRowUpdates) {
    const int64_t lanes = machine.Lanes(WrittenType(s, block)), along = s.GetExtent(apart.back());
    if (lanes > 1 && (along < 0 || along >= lanes)) {
      const Names split = s.Split(apart.back(), {-1, lanes});
      apart.back() = split[0];
      inside = split[1];
    }
  }
  const Names order = Concat({apart, s.GetOrderedLoops(block), {inside}});
  if (order.size() > 1) s.Reorder(order);
  if (role == BlockRole::kCounts) {
    s.Unroll(inside);
  } else if (!inside.empty()) {
    s.Vectorize(inside);
  }
  ParallelOuter(s, apart);
}

void ScheduleInOrder(Schedule& s, const Parts& parts, const Machine& machine) {
  for (const std::string& block : s.GetBlocks()) {
    const BlockRole role = PartOf(parts, block).role;
    if (role == BlockRole::kUpdates || role == BlockRole::kRowUpdates ||
        role == BlockRole::kCounts) {
      ScheduleUpdates(s, role, machine, block);
    } else {
      ScheduleBlock(s, parts, machine, block);
    }
  }
}

}  // namespace tenon::ops
