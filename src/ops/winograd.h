// Convolution with 3 x 3 taps by fewer products (Winograd 1980; Lavin and Gray, arXiv 1509.09308):
// a tile of t x t results is a bilinear form in t + 2 points along each axis, and takes (t + 2)^2
// products for each pair of channels instead of 9 t^2: 16 instead of 36, or 36 instead of 144.
//
//   result = At (sum over channels of (G w Gt) o (Bt d B)) A
//
// The forms belong to points at which polynomials are evaluated. For t = 4 they are 0, +-1/sqrt 2,
// +-sqrt 2 and infinity: pairs of powers that balance each other, so that what is added up is of
// like size (with the usual 0, +-1, +-2 the error is twice as large, its maximum four times). For t
// = 2: 0,
// +-1, infinity.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "ops/define.h"

namespace tenon::ops {

/// G for tiles of t x t: t + 2 rows of 3.
std::vector<std::array<double, 3>> WinogradWeights(int64_t tile);

/// What an index gives along an axis of a tile.
using Line = std::function<Expr(const Expr&)>;
/// The element of Bt times a column of t + 2 elements, and of At times one of t + 2 sums, that an
/// index picks: where that is unrolled, its formula is left.
Expr WinogradPoint(int64_t tile, const Expr& point, const Line& elements);
Expr WinogradPlace(int64_t tile, const Expr& place, const Line& sums);

/// The tensors that lead from an input to a winograd_conv's results, with channels in blocks of
/// `lanes`: [n, tiles down, tiles across, blocks, points, points, lanes] and so on.
struct WinogradStages {
  te::Tensor input_half, input;    // kInputHalf, kInput
  te::Tensor products, sums;       // the anchor, kSums
  te::Tensor result_half, result;  // kResultHalf, kResult
};
/// `x` and `u` answer for whole tiles and whole blocks, beyond the dims too.
WinogradStages MakeWinogradStages(const OpContext& op, int64_t lanes, const Operand& x,
                                  const Operand& u);
/// The result's element at [n, channel, h, w], without the bias.
Expr WinogradElement(const WinogradStages& stages, int64_t tile, int64_t lanes,
                     const te::Indices& at);

/// t of a winograd_conv with these weights.
inline int64_t WinogradTile(const Operand& u) { return u.dim(2) - 2; }

}  // namespace tenon::ops
