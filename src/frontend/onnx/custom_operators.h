// Operators of users: who has them says what a node computes, as a function of loop IR.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "ir/attrs.h"

namespace tenon::onnx {

class OpContext;

/// A node of such an operator, with what is known of it.
struct CustomNode {
  std::string name;                       // as messages have it
  std::vector<graph::TensorType> inputs;  // row-major; none may be left out
  size_t num_outputs = 0;
  Attrs attributes;  // numbers, texts and lists of them; others are errors
};

/// What the node computes.
struct CustomBody {
  std::string body;  // of the node `call` (graph/ops.def)
  std::vector<graph::TensorType> results;
  std::vector<Expr> conditions;  // of the sizes of the inputs, checked at a call
};

/// Operators by domain ("" is the default one) and name. They come before those that there are.
using CustomOperator = std::function<Expected<CustomBody>(const CustomNode&)>;
using CustomOperators = std::map<std::pair<std::string, std::string>, CustomOperator>;

/// The operator, or null.
const CustomOperator* FindCustom(const CustomOperators& all, std::string_view domain,
                                 std::string_view name);

Status ImportCustom(OpContext& c, const CustomOperator& op);

}  // namespace tenon::onnx
