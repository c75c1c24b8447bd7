// Scans whose sequences end before the others of their batch.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "frontend/onnx/proto.h"

namespace tenon::onnx {

/// Makes a name of its own for a role; whoever gives it keeps the text.
using NameMaker = std::function<std::string_view(std::string_view role)>;

/// A node of that version of the default operators.
NodeProto NodeOf(std::string_view op, int64_t opset, std::vector<std::string_view> inputs,
                 std::vector<std::string_view> outputs);

/// Limits a scan of `states` states, a node of graph `one`, to as many steps as the graph's last
/// input says at `entry`: from then on the states stay, and what is collected is zero.
void LimitSteps(size_t states, std::string_view entry, const NameMaker& name, NodeProto* scan,
                GraphProto* one);

}  // namespace tenon::onnx
