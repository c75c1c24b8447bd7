// Importers by family: each file gives its rows of the operator table.
#pragma once

#include <span>

#include "frontend/onnx/op_context.h"

namespace tenon::onnx {

std::span<const OpRow> AttentionRows();
std::span<const OpRow> ComputeRows();
std::span<const OpRow> ContribRows();
std::span<const OpRow> ContribAttentionRows();
std::span<const OpRow> ContribBlockRows();
std::span<const OpRow> ContribExpertRows();
std::span<const OpRow> ContribQuantizeRows();
std::span<const OpRow> ControlRows();
std::span<const OpRow> ElementwiseRows();
std::span<const OpRow> IndexRows();
std::span<const OpRow> IntegerRows();
std::span<const OpRow> MathRows();
std::span<const OpRow> MlRows();
std::span<const OpRow> MovementRows();
std::span<const OpRow> NormalizationRows();
std::span<const OpRow> QuantizeRows();
std::span<const OpRow> RandomRows();
std::span<const OpRow> RecurrentRows();
std::span<const OpRow> ReduceRows();
std::span<const OpRow> RegionRows();
std::span<const OpRow> ResizeRows();
std::span<const OpRow> SamplingRows();
std::span<const OpRow> ScatterRows();
std::span<const OpRow> SignalRows();
std::span<const OpRow> TrainingRows();
std::span<const OpRow> WindowRows();

/// Two inputs as matrices, by NumPy's rule: a vector on the left is a row, one on the
/// right a column, and its axis vanishes from the product.
struct Matrices {
  ValueId a, b;
  bool row, column;
};
Expected<Matrices> AsMatrices(OpContext& c, size_t a = 0, size_t b = 1);
/// Sets output 0 to the product without the axes that vanish.
Status SetProduct(OpContext& c, const Matrices& m, ValueId product);

/// The attribute kernel_shape as a fact about open sizes of a weight [M, C, k…].
Status FixKernel(OpContext& c, size_t weight);

/// The attributes of a convolution of the first input with that weight.
Expected<Attrs> ReadConv(OpContext& c, size_t weight = 1);

/// Which inputs of a node are its 8-bit operands and their zero points, which may be left out.
struct IntegerOperands {
  size_t a, b, zero_a, zero_b;
};
/// Products and convolutions of operands less their zero points, in i32.
Expected<ValueId> IntegerProduct(OpContext& c, const Matrices& m, const IntegerOperands& at);
Expected<ValueId> IntegerConv(OpContext& c, const IntegerOperands& at);

/// Shared by convolutions and pools: the spatial attributes, with auto_pad resolved.
struct WindowAttrs {
  std::vector<int64_t> kernel, strides, dilations, pads;
  bool auto_pad = false;  // pads come from SAME_* or VALID
};
/// `kernel`: what kernel_shape must be where it is left out or has to agree; empty: required. The
/// spatial axes of the first input begin at `first_axis`.
Expected<WindowAttrs> ReadWindow(OpContext& c, std::vector<int64_t> kernel, size_t first_axis = 2);

}  // namespace tenon::onnx
