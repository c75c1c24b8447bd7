// Rows where threads run together: a block of threads has a row, which they reduce together.
#pragma once

#include <string>
#include <vector>

#include "ops/group.h"
#include "ops/scheduling.h"

namespace tenon::ops {

/// Threads of a block that has rows of `n` elements.
Knob RowThreads(int64_t n, const Machine& machine);
/// `passes` over rows of n elements, each with so many operations an element, that end in a
/// reduction but for the last.
void AddRowWork(WorkDescription* work, const Machine& machine, int64_t rows, int64_t n,
                int64_t threads, int64_t passes, double operations);
struct RowShape {
  int64_t vector = 1;  // neighbours that a thread reads and writes at once
  int64_t rows = 1;    // of a block; where it is more than one, a knob of that name
};
/// Shares out the rows of `store`, all of its axes but the last, among blocks, and each row among
/// $threads; `reductions`, of rows, are made by these threads just before, of what the blocks
/// `held` keep in their registers.
void ScheduleRows(Schedule& s, const Names& reductions, const std::string& store,
                  const Names& held = {}, const RowShape& shape = {});

/// The softmax of rows as an operand; the reductions are marked as kAcross in the group, and, where
/// it `holds` the exponentials, their block as kMove.
Operand SoftmaxOfRows(Group& group, const std::string& name, const Operand& x, bool holds = false);

}  // namespace tenon::ops
