// Importers by family: each file gives its rows of the operator table.
#pragma once

#include <span>

#include "frontend/onnx/op_context.h"

namespace tenon::onnx {

std::span<const OpRow> ElementwiseRows();
std::span<const OpRow> ComputeRows();
std::span<const OpRow> ReduceRows();
std::span<const OpRow> MovementRows();
std::span<const OpRow> IndexRows();
std::span<const OpRow> ResizeRows();

/// Shared by convolutions and pools: the spatial attributes, with auto_pad resolved.
struct WindowAttrs {
  std::vector<int64_t> kernel, strides, dilations, pads;
  bool auto_pad = false;  // pads come from SAME_* or VALID
};
/// `kernel`: what kernel_shape must be where it is left out or has to agree; empty: required.
Expected<WindowAttrs> ReadWindow(OpContext& c, std::vector<int64_t> kernel);

}  // namespace tenon::onnx
