// Models as files again: the inverse of ReadModel, for what takes models apart; and as text.
#pragma once

#include <string>

#include "frontend/onnx/proto.h"

namespace tenon::onnx {

/// The bytes of a file that ReadModel reads as this model. What ReadModel does not keep (training
/// graphs, quantisation annotations) is not there.
std::string WriteModel(const ModelProto& model);

/// One line per input, initializer, node and output; graphs of attributes are indented below their
/// node. For people: of initializers only short lists of i64 show their elements.
std::string PrintModel(const ModelProto& model);

}  // namespace tenon::onnx
