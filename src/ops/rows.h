// Operators along the last axis of row-major tensors: softmax, layer norm, reductions. A reduction
// of a row is done in two steps, lanes first (several vectors of partial results, so that additions
// do not wait for each other) and then across lanes; whole rows stay in the nearest cache from one
// step to the next.
#pragma once

#include "ops/algorithms.h"

namespace tenon::ops {

bool RowsApply(const Group& group, const graph::Node& node);
Operand BuildRows(Group& group, const graph::Node& node, Attrs* attrs);

/// A row reduction in two steps: element(row, j) combined over j in [0, n). `name` names the
/// tensors.
Operand ReduceRow(const std::string& name, const std::vector<Expr>& rows, int64_t n, int64_t lanes,
                  BinaryOp combiner,
                  const std::function<Expr(const te::Indices& row, const Expr& j)>& element);

}  // namespace tenon::ops
