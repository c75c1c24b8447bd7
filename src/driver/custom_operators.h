// Operators of users, from functions of loop IR.
#pragma once

#include <functional>
#include <string>

#include "frontend/onnx/custom_operators.h"
#include "loop/func.h"
#include "support/expected.h"

namespace tenon::driver {

/// What a node computes whose operator is these functions: of those that no other calls, the first,
/// by name, that takes the node's inputs, by number, types and ranks. Its parameters are the
/// inputs, then the results; a scalar is the node's attribute of that name. Errors: none fits;
/// there is no such attribute, or it is no number; the node has another one.
Expected<onnx::CustomBody> BodyOf(const Module& functions, const onnx::CustomNode& node);

/// What is wrong with functions as an operator, whatever its nodes.
Status CheckOperator(const Module& functions);

/// The operator whose functions a file of loop IR holds.
Expected<onnx::CustomOperator> ReadOperator(const std::string& path);

}  // namespace tenon::driver
