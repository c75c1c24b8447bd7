// Views that cost nothing: where a result lies in memory just as its operand does.
#pragma once

#include "graph/graph.h"
#include "graph/storage_desc.h"

namespace tenon::graph {

/// Whether the node's result has its elements in the very order in which its operand has them, so
/// that it can be the same memory: a reshape of what is row-major, or a transpose whose operand is
/// stored in the order that the transpose makes row-major.
bool IsStoredView(const Graph& g, const Node& node);
/// The same of a reshape or transpose that would have an operand and a result of these types.
bool IsStoredView(const Node& node, const TensorType& from, const TensorType& to);

/// The order of storage with which the operand of a transpose is the same memory as its row-major
/// result.
StorageDesc OrderFor(const Node& transpose);
/// Whether a transpose of what is row-major gives a value that lies in the order of its axes.
bool IsTransposeTo(const Node& transpose, const std::vector<int>& order);

}  // namespace tenon::graph
