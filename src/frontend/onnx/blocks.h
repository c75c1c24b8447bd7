// Weights of few bits, several in a byte, with a scale for each block of an axis.
#pragma once

#include "frontend/onnx/formula.h"

namespace tenon::onnx {

/// How many bits a code may have: 2, 4 or 8.
Expected<int64_t> ReadBits(OpContext& c, const char* name, int64_t fallback);
/// The codes in the bytes of the last axis, low bits first: one in each byte. `count` of them,
/// where the last byte is not full.
Val Unpacked(const Val& bytes, int64_t bits, const Expr& count = nullptr);
/// (codes - zero) · scale in f32, where scales and zero points are one for each `block` elements of
/// an axis (0: for the whole axis), and broadcast on others. A zero point that is left out is
/// `otherwise`.
Val OfBlocks(const Val& codes, const Val& scales, const Val& zeros, double otherwise, int64_t axis,
             int64_t block);

}  // namespace tenon::onnx
