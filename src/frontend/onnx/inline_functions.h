// Model-local functions, replaced by their bodies.
#pragma once

#include <deque>
#include <string>

#include "frontend/onnx/proto.h"
#include "support/expected.h"

namespace tenon::onnx {

/// Replaces every node of `model.graph` that calls one of `model.functions` by the function's body,
/// calls inside bodies too. Inner tensors and nodes get names of their own, which `names` keeps
/// alive. Functions that call themselves, by whatever way, and expansion beyond `max_nodes` nodes
/// are errors.
Status InlineFunctions(ModelProto* model, size_t max_nodes, std::deque<std::string>* names,
                       const std::string& file);

}  // namespace tenon::onnx
