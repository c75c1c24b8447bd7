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

/// Which inputs of a node are its 8-bit operands and their zero points, which may be left out.
struct IntegerOperands {
  size_t a, b, zero_a, zero_b;
};
/// Products and convolutions of operands less their zero points, in i32.
Expected<ValueId> IntegerProduct(OpContext& c, const Matrices& m, const IntegerOperands& at);
Expected<ValueId> IntegerConv(OpContext& c, const IntegerOperands& at);

}  // namespace tenon::onnx
