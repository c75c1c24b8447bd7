// A row is what is reduced to one result. Everything follows the block that computes it:
//
//   held[i, j] = f(x[i, j])      →   blocks and threads over i:
//   out0[i] = Σj held[i, j]            threads over j: held[j] = f(x[i, j]), in registers
//   out1[i, j] = held[i, j]            threads over j: out1[i, j] = held[j]
//                                      threads over j: a part of the sum; the parts are combined
//                                      out0[i] = the sum
//
// Sums that a row is computed with come first, by the threads of the row.
//
// Long rows have a block of threads each. Of short ones a block has several: along threadIdx.y
// where they are so few that their elements want a thread each, else a thread has a row.
#include "ops/held_rows.h"

#include <algorithm>

namespace tenon::ops {

namespace {

struct RowThreadsShape {
  int64_t along;  // threads of a row
  int64_t rows;   // of a block
};

RowThreadsShape ShapeOf(int64_t rows, int64_t each, const Machine& machine) {
  constexpr int64_t kLeast = 32, kMost = 128, kShort = 8;
  RowThreadsShape shape{1, 1};
  const bool few = rows < machine.workers * kMost;
  if (each >= kLeast || (each >= kShort && few)) {
    while (shape.along < kMost && shape.along * 2 <= each) shape.along *= 2;
  }
  const bool fill = rows * shape.along >= machine.workers * kMost;
  while (shape.along * shape.rows < (fill ? kMost : kLeast)) shape.rows *= 2;
  return shape;
}

class HeldRowsScheduler {
 public:
  HeldRowsScheduler(Schedule& s, const Machine& machine, std::string held)
      : s_(s), machine_(machine), held_(std::move(held)) {}

  bool Run() {
    for (const std::string& block : s_.GetBlocks()) {
      if (block == held_) break;
      before_.push_back(block);
    }
    Names rows, columns;
    if (!SplitAxes(&rows, &columns)) return false;
    const int64_t results = TripsTogether(s_, rows), each = TripsTogether(s_, columns);
    if (results < 1 || each < 1) return false;
    shape_ = ShapeOf(results, each, machine_);
    s_.Reorder(Concat({rows, columns}));
    const std::string at = PlaceRows(rows, columns);
    if (!s_.ok()) return false;
    Names with;
    for (const std::string& block : s_.GetBlocks()) {
      if (block == held_ || IsBefore(block)) continue;
      s_.ReverseComputeAt(block, at);
      with.push_back(block);
    }
    if (!s_.ok() || !PlaceSums(at)) return false;
    ShareRow(LoopsInside(s_, held_, at).spatial);
    for (const std::string& block : with) {
      const InnerLoops in = LoopsInside(s_, block, at);
      if (s_.ok()) ShareRow(in.reduce.empty() ? in.spatial : in.reduce);
    }
    if (!s_.ok()) return false;
    s_.SetScope(WrittenBuffer(s_, held_), Scope::kLocal);
    for (const std::string& block : with) {
      if (!s_.GetReduceLoops(block).empty()) s_.SetScope(WrittenBuffer(s_, block), Scope::kLocal);
    }
    return s_.ok();
  }

 private:
  // Its loops that some reduction runs over are columns: all reductions over the same.
  bool SplitAxes(Names* rows, Names* columns) {
    const std::string buffer = WrittenBuffer(s_, held_);
    const Names loops = s_.GetLoops(held_);
    std::vector<bool> reduced(loops.size());
    for (const std::string& block : s_.GetBlocks()) {
      const Names reduce = s_.GetReduceLoops(block);
      if (reduce.empty() || IsBefore(block)) continue;
      const std::vector<bool> along = AxesAlong(s_, block, buffer, reduce);
      if (along.size() != loops.size()) return false;
      if (!columns->empty() && along != reduced) return false;
      reduced = along;
      columns->clear();
      for (size_t i = 0; i < loops.size(); ++i) {
        if (reduced[i]) columns->push_back(loops[i]);
      }
    }
    for (size_t i = 0; i < loops.size(); ++i) {
      if (!reduced[i]) rows->push_back(loops[i]);
    }
    return !columns->empty();
  }

  bool IsBefore(const std::string& block) const {
    return std::find(before_.begin(), before_.end(), block) != before_.end();
  }

  // Sums that a row is computed with: one or few for each, by the threads that have the row.
  bool PlaceSums(const std::string& at) {
    constexpr int64_t kMost = 4;
    for (size_t i = before_.size(); i-- > 0;) {
      const std::string& block = before_[i];
      s_.SetScope(WrittenBuffer(s_, block), Scope::kLocal);
      s_.ComputeAt(block, at);
      const InnerLoops in = LoopsInside(s_, block, at);
      if (!s_.ok() || in.reduce.empty()) return false;
      const int64_t results = TripsTogether(s_, in.spatial);
      if (results < 1 || results > kMost) return false;
      for (const std::string& loop : in.spatial) s_.Unroll(loop);
      ShareRow(in.reduce);
    }
    return s_.ok();
  }

  // The rows among blocks and threads; returns the innermost loop over them.
  std::string PlaceRows(const Names& rows, const Names& columns) {
    std::string row = rows.empty()      ? s_.Split(columns[0], {1, -1})[0]
                      : rows.size() > 1 ? s_.Fuse(rows)
                                        : rows[0];
    if (shape_.rows == 1) {
      s_.Bind(row, ThreadAxis::kBlockIdxX);
      return row;
    }
    const Names split = s_.Split(row, {-1, shape_.rows});
    s_.Bind(split[0], ThreadAxis::kBlockIdxX);
    s_.Bind(split[1], shape_.along > 1 ? ThreadAxis::kThreadIdxY : ThreadAxis::kThreadIdxX);
    return split[1];
  }

  // What a block does for one row: by its threads, or by the one that has it.
  void ShareRow(Names loops) {
    constexpr int64_t kUnrolled = 32;
    std::erase_if(loops, [&](const std::string& loop) { return s_.GetExtent(loop) == 1; });
    if (loops.empty()) return;
    const std::string along = loops.size() > 1 ? s_.Fuse(loops) : loops[0];
    if (shape_.along > 1) {
      const Names split = s_.Split(along, {-1, shape_.along});
      s_.Bind(split[1], ThreadAxis::kThreadIdxX);
      if (s_.GetExtent(split[0]) <= kUnrolled) s_.Unroll(split[0]);
    } else {
      s_.Unroll(along);  // short, and what is held are registers only so
    }
  }

  Schedule& s_;
  const Machine& machine_;
  const std::string held_;
  Names before_;  // what the row is computed with
  RowThreadsShape shape_{1, 1};
};

}  // namespace

bool ScheduleHeldRows(Schedule& s, const Parts& parts, const Machine& machine) {
  const Names held = BlocksOf(s, parts, BlockRole::kMove);
  if (held.size() != 1) return false;
  Schedule tried = s;
  if (!HeldRowsScheduler(tried, machine, held[0]).Run()) return false;
  s = std::move(tried);
  return true;
}

}  // namespace tenon::ops
