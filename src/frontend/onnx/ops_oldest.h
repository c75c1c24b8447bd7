// Operators as the first operator sets have them, and those that only these had.
#pragma once

#include <span>

#include "frontend/onnx/op_context.h"

namespace tenon::onnx {

std::span<const OpRow> OldestRows();

}  // namespace tenon::onnx
