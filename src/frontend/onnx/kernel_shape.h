// The attribute kernel_shape beside a weight that has these sizes itself.
#pragma once

#include <span>

#include "frontend/onnx/op_context.h"

namespace tenon::onnx {

/// That the attribute, where it is there, says what a weight has after FixKernel (ops.h).
Status CheckKernel(const OpContext& c, const std::optional<std::vector<int64_t>>& kernel_shape,
                   std::span<const Expr> kernel);

}  // namespace tenon::onnx
