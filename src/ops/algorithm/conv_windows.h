// Convolution as the product of weights and the matrix of windows, which is never made: where the
// product's indices are in the images (cuDNN's implicit GEMM, arXiv 1410.0759). Rows are maps,
// columns the places of one image, and k runs over taps and, innermost, channels.
#pragma once

#include "ops/conv_geometry.h"
#include "ops/operand.h"

namespace tenon::ops {

class ConvWindows {
 public:
  explicit ConvWindows(const ConvGeometry& c) : c_(c) {}

  /// Of k: the channel, then the tap along each axis of space. In steps of `depth`, so that a step
  /// is within one tap where channels come in whole steps.
  te::Indices Tap(const Expr& step, const Expr& k, int64_t depth) const;
  /// Of k as one number.
  te::Indices Tap(const Expr& k) const { return Tap(k, IndexConst(0), 1); }
  int64_t Depth() const { return c_.w[1] * c_.Window(); }

  /// The place in the image that the tap of the column's window meets; `inside` gets the conditions
  /// under which there is one (null: always).
  te::Indices Place(const Expr& column, const te::Indices& tap, Expr* inside) const;

  /// Each window is one place, and windows stand next to each other as places do.
  bool IsPointwise() const;
  int64_t Columns() const;

 private:
  ConvGeometry c_;
};

/// Whether units of a warp may multiply windows and weights: one group of several maps, in 16 bits
/// added up in f32, several places, of known sizes, with one result.
bool IsWarpConv(const Site& site);

/// Adds a condition to those that there are; null: none.
void AddCondition(Expr* all, const Expr& one);
/// The value, or zero where the condition does not hold.
Expr OrZero(const Expr& condition, const Expr& value);

}  // namespace tenon::ops
