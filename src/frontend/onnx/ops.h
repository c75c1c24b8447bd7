// Importers by family: each file gives its rows of the operator table.
#pragma once

#include <span>

#include "frontend/onnx/op_context.h"

namespace tenon::onnx {

std::span<const OpRow> ElementwiseRows();
std::span<const OpRow> ComputeRows();
std::span<const OpRow> ControlRows();
std::span<const OpRow> IntegerRows();
std::span<const OpRow> ReduceRows();
std::span<const OpRow> MovementRows();
std::span<const OpRow> IndexRows();
std::span<const OpRow> ResizeRows();

/// The first two inputs as matrices, by NumPy's rule: a vector on the left is a row, one on the
/// right a column, and its axis vanishes from the product.
struct Matrices {
  ValueId a, b;
  bool row, column;
};
Expected<Matrices> AsMatrices(OpContext& c);
/// Sets output 0 to the product without the axes that vanish.
Status SetProduct(OpContext& c, const Matrices& m, ValueId product);

/// The attributes of a convolution of the first two inputs.
Expected<Attrs> ReadConv(OpContext& c);

/// Shared by convolutions and pools: the spatial attributes, with auto_pad resolved.
struct WindowAttrs {
  std::vector<int64_t> kernel, strides, dilations, pads;
  bool auto_pad = false;  // pads come from SAME_* or VALID
};
/// `kernel`: what kernel_shape must be where it is left out or has to agree; empty: required.
Expected<WindowAttrs> ReadWindow(OpContext& c, std::vector<int64_t> kernel);

}  // namespace tenon::onnx
