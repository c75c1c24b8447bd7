// Names and order of a graph's nodes.
#pragma once

#include <string>
#include <vector>

#include "frontend/onnx/proto.h"
#include "support/expected.h"

namespace tenon::onnx {

/// "node 'conv1' (Conv)"; nodes without a name are called by their first output.
std::string DescribeNode(const NodeProto& node, size_t index);

/// An order of the nodes in which every tensor is produced before it is read: the file's own
/// wherever it is one (the specification demands it), else sorted. Reports tensors that are defined
/// twice, read but never defined, graph outputs that nothing produces, and cycles.
Expected<std::vector<size_t>> OrderNodes(const GraphProto& graph, const std::string& file);

}  // namespace tenon::onnx
