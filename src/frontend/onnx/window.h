// Windows as convolutions and pools have them: the attributes that all of these share.
//
// auto_pad becomes pads. Beside a stride these depend on the size of the axis; where only the call
// knows that, or the size of the kernel, the axis is padded by itself before the window moves over
// it, which then has no pads there.
#pragma once

#include <span>
#include <vector>

#include "frontend/onnx/formula.h"

namespace tenon::onnx {

/// An axis of the first input that is padded by a formula.
struct PaddedAxis {
  int64_t axis;
  Expr before, size;  // of the padded axis
};

struct WindowAttrs {
  std::vector<int64_t> kernel, strides, dilations, pads;
  bool auto_pad = false;            // pads come from SAME_* or VALID
  std::vector<PaddedAxis> by_call;  // their pads are 0
};

/// `kernel`: what kernel_shape must be where it is left out or has to agree; empty: required. The
/// spatial axes of the first input begin at `first_axis`.
Expected<WindowAttrs> ReadWindow(OpContext& c, std::vector<int64_t> kernel, size_t first_axis = 2);

/// `x` with what its axes are padded by.
Val Padded(Val x, std::span<const PaddedAxis> axes, double value);
Val Padded(Val x, std::span<const PaddedAxis> axes, const Val& value);

/// The attributes of the graph's operator for a convolution of the first input, padded so, with
/// input `weight`.
struct ConvAttrs {
  Attrs attrs;
  std::vector<PaddedAxis> by_call;
};
Expected<ConvAttrs> ReadConv(OpContext& c, size_t weight = 1);

/// The attribute kernel_shape as a fact about open sizes of a weight [M, C, k…].
Status FixKernel(OpContext& c, size_t weight);
/// That the attribute, where it is there, says what a weight has after FixKernel.
Status CheckKernel(const OpContext& c, const std::optional<std::vector<int64_t>>& kernel_shape,
                   std::span<const Expr> kernel);

}  // namespace tenon::onnx
