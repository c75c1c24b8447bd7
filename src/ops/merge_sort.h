// Sorting by merging where threads run together: what algorithms that need an order are made with.
#pragma once

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "ops/group.h"

namespace tenon::ops {

/// Rows of numbers without sign, which are brought into rising order, equal ones as they stand.
struct KeyRows {
  std::string name;  // of what is made: a prefix
  std::vector<Expr> rows;
  Expr size;   // of a row
  Expr first;  // how many of a row are asked for
  DType type;
  std::function<Expr(const te::Indices& row, const Expr& j)> at;
};

/// The first keys of each row, and the places in the row where they stood: [rows…, first].
struct SortedRows {
  DType place;  // the type of places: i32, or i64 where rows may be longer
  std::function<Expr(const te::Indices& row, const Expr& rank)> key, at;
};

/// No longer rows are merged; of those whose size is open nobody takes longer ones for possible.
inline constexpr int64_t kLongestMerged = std::numeric_limits<int32_t>::max();
/// Whether rows of this size are sorted here: known ones that are not empty, and open ones.
bool IsMerged(const Expr& size);
/// The longest that a row of this size may be.
int64_t LongestRow(const Expr& size);

/// Adds the blocks that sort. ScheduleMerging is what schedules them.
SortedRows SortByMerging(Group& group, const KeyRows& keys);

/// Schedules the blocks of SortByMerging. Where results of the kernel alone read what is sorted,
/// they go along with the last launch, and are returned; other blocks stay as they are.
std::vector<std::string> ScheduleMerging(Schedule& s, const Parts& parts, const Machine& machine);

/// Adds what sorting so many rows takes to the description of a kernel.
void AddMerging(WorkDescription* work, const Machine& machine, int64_t rows, int64_t size,
                int64_t first, DType type);

}  // namespace tenon::ops
