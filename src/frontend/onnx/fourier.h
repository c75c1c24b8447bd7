// Fourier transforms of many signals at once.
#pragma once

#include "frontend/onnx/formula.h"

namespace tenon::onnx {

/// Signals along the last axis; without an imaginary part they are real.
struct Complex {
  Val re, im;
};

inline constexpr int64_t kLongestTransform = 1 << 20;

/// Whether a transform of that length is made in passes: a known one of small prime factors.
bool HasPasses(const Expr& length);

/// The first `bins` results of transforms of `length` elements each; `sign`: of the exponent. Not
/// divided by the length.
///
/// A known length of small prime factors is transformed in a pass for each factor, n·Σp operations
/// instead of n², with errors that grow with their number and not with the length (Cooley and Tukey
/// 1965, in the order of Stockham's, which needs no permutation). Any other is a product with the
/// matrix of cos and sin of 2π·j·k / n. Passes round each product and each sum
/// (Formula::RoundEach).
Complex FourierTransform(const Formula& f, const Complex& x, const Expr& length, const Expr& bins,
                         int sign);

}  // namespace tenon::onnx
