// Reductions of rows in two steps, for algorithms that work row by row: lanes first (several
// vectors of partial results, so that additions do not wait for each other) and then across lanes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ops/group.h"

namespace tenon::ops {

/// How many partial results a row of n elements deserves on a machine with so many lanes: a whole
/// number of vectors.
int64_t PartialWidth(int64_t n, int64_t lanes);

/// What the two steps of a reduction are.
struct RowRoles {
  BlockRole lanes = BlockRole::kLanes, across = BlockRole::kAcross;
};

/// element(row, j) combined over j in [0, n), by way of `width` partial results; the blocks
/// "<name>_lanes" and `name` are marked in the group. With a width of 0 one after the other, in
/// `name` alone.
Operand ReduceRow(Group& group, const std::string& name, const std::vector<Expr>& rows,
                  const Expr& n, int64_t width, BinaryOp combiner,
                  const std::function<Expr(const te::Indices& row, const Expr& j)>& element,
                  const RowRoles& roles = {});

/// The index of an element of a row, and that of its row.
te::Indices InRow(te::Indices row, const Expr& j);
te::Indices RowOf(const te::Indices& i);

}  // namespace tenon::ops
