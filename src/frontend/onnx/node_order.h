// Names and order of a graph's nodes.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/onnx/proto.h"
#include "support/expected.h"

namespace tenon::onnx {

/// "node 'conv1' (Conv)"; nodes without a name are called by their first output.
std::string DescribeNode(const NodeProto& node, size_t index);
/// Who asks for a condition (graph.h): "node 'add' (Add) needs of 'x' and 'y'".
std::string AskerOf(const NodeProto& node, size_t index);

/// The names that a graph in an attribute reads from those around it, in order of first use.
std::vector<std::string_view> OuterNames(const GraphProto& graph);

/// An order of the nodes in which every tensor is produced before it is read: the file's own
/// wherever it is one (the specification demands it), else sorted. Reports tensors that are defined
/// twice, read but never defined, graph outputs that nothing produces, and cycles.
/// What the graphs in a node's attributes read counts as read by the node. `outer`: whether a graph
/// around this one has a tensor of that name; null for the main graph.
Expected<std::vector<size_t>> OrderNodes(
    const GraphProto& graph, const std::string& file,
    const std::function<bool(std::string_view)>& outer = nullptr);

}  // namespace tenon::onnx
