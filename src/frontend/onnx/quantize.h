// Numbers of 8 bits that stand for floats, q for (q - zero) · scale: what operators on them share.
#pragma once

#include "frontend/onnx/formula.h"

namespace tenon::onnx {

/// (q - zero) · scale in f32. The zero point may be left out; both broadcast to q.
Val Dequantized(const Val& q, const Val& scale, const Val& zero);
/// round(ratio) + zero as integers of `type`, kept in its range; the zero point may be left out.
Val Quantized(const Val& ratio, const Val& zero, DType type);

/// f32 as u8 over the range that the values take, which is made to hold 0:
///   scale = (max - min) / 255, or 1 where all values are 0;  zero = round(-min / scale)
///   q = round(x / scale) + zero, to 0..255
struct DynamicallyQuantized {
  ValueId q, scale, zero;
};
Expected<DynamicallyQuantized> DynamicallyQuantize(OpContext& c, ValueId x);

/// Products of bytes less their zero points, which may be kNoValue, in i32: a is […, m, k], and its
/// zero point one or one for each row; b is […, k, n], and its zero point one or one for each
/// column.
Expected<ValueId> IntegerProduct(OpContext& c, ValueId a, ValueId b, ValueId zero_a,
                                 ValueId zero_b);

}  // namespace tenon::onnx
