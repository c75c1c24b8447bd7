// The smallest model that still does what somebody looks for.
#pragma once

#include <functional>
#include <string>

#include "support/expected.h"

namespace tenon::onnx {

/// Takes a model apart as long as `holds` says yes of what is left, and returns the last such
/// model. What is tried, again and again until nothing helps: one value as the only output; leaving
/// out nodes, whose results become inputs where the model says their types (value_info); taking an
/// operand for a node's result; leaving out attributes and optional operands; constants as inputs;
/// smaller sizes of inputs. Most candidates are wrong models: `holds` must not take an error for
/// the fault it looks for. `model` is the bytes of a file, of which `holds` says yes; weights in
/// other files stay there. Errors: the bytes are no model.
Expected<std::string> ReduceModel(const std::string& model,
                                  const std::function<bool(const std::string& model)>& holds);

/// The model as lines of text (write_model.h).
Expected<std::string> ModelText(const std::string& model);

}  // namespace tenon::onnx
