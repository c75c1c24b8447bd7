// Regions of whole pixels: MaxRoiPool.
//
// A region is cut into bins, whose pixels differ in number from region to region. There is room for
// the most that a bin of the call has, a size that the call finds; what a bin has not is left out
// of its largest.
#include <algorithm>
#include <cmath>

#include "frontend/onnx/call_sizes.h"
#include "frontend/onnx/index_checks.h"
#include "frontend/onnx/ops.h"

namespace tenon::onnx {
namespace {

constexpr DType kI64 = DType::Int(64);

// Rounded, halves away from 0.
Val RoundedAway(const Val& x) { return Apply(OpKind::kSign, x) * Floor(Abs(x) + 0.5); }

// The pixels of each bin along one axis: K places in each of P bins, [R, P, K], of which those
// there are lie in the image.
struct BinPixels {
  Val at, there, any;  // any: [R, P]
  Expr most;           // K
};
BinPixels PixelsAlong(const Val& first, const Val& last, int64_t bins, const Val& size) {
  const Formula& f = first.formula();
  const Val length = Max(last - first + 1, 1) / static_cast<double>(bins);
  const Val bin = f.Iota(IndexConst(bins), first.dtype());
  const auto inside = [&](const Val& v) {
    return Max(Min(v + Unsqueeze(first, 1), Cast(size, v.dtype())), 0);
  };
  const Val from = inside(Floor(bin * Unsqueeze(length, 1)));
  const Val to = inside(Apply(OpKind::kCeil, (bin + 1) * Unsqueeze(length, 1)));
  BinPixels p;
  p.any = to > from;
  p.most = SizeOf(Cast(Max(Reduce("max", to - from, {0, 1}, false), 1), kI64));
  p.at = Unsqueeze(from, 2) + f.Iota(p.most, first.dtype());
  p.there = p.at < Unsqueeze(to, 2);
  return p;
}

// The largest pixel of each bin of regions [R, 5], an image's number and two corners; 0 where a bin
// has none.
Status ImportMaxRoiPool(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 2));
  TN_ASSIGN_OR_RETURN(const std::optional<Axes> bins, c.Ints("pooled_shape"));
  TN_ASSIGN_OR_RETURN(const double scale, c.Float("spatial_scale", 1));
  TN_RETURN_IF_ERROR(c.Fix(1, 1, 5));
  constexpr int64_t kMost = 1 << 12;
  if (!bins || bins->size() != 2 || std::min((*bins)[0], (*bins)[1]) < 1 ||
      std::max((*bins)[0], (*bins)[1]) > kMost)
    return c.Error("expected two sizes of 1 to {} in pooled_shape", kMost);
  if (c.Rank(0) != 4 || c.Rank(1) != 2 || AsInt(c.Dims(1)[1]) != 5) {
    return c.Error("expected an image [N, C, H, W] and regions [R, 5], but got {} and {}",
                   c.Type(0).ToString(), c.Type(1).ToString());
  }
  const Formula f(c);
  const Val x = f.In(0), rois = Widened(f.In(1));
  BinPixels axis[2];  // y, x
  for (int64_t k = 0; k < 2; ++k) {
    const auto corner = [&](int64_t column) {
      return RoundedAway(Element(rois, 1, column) * scale);
    };
    axis[k] =
        PixelsAlong(corner(2 - k), corner(4 - k), (*bins)[static_cast<size_t>(k)], Size(x, 2 + k));
  }
  // All pairs, [R, Py, Px, Ky, Kx].
  const auto rows = [](const Val& v) { return Unsqueeze(Unsqueeze(v, 2), 4); };
  const auto columns = [](const Val& v) { return Unsqueeze(Unsqueeze(v, 1), 3); };
  const auto inside = [&](const Val& at, int64_t k) {
    return Min(Cast(at, kI64), Max(Size(x, 2 + k) - 1, 0));
  };
  Val image = InRange(c, 1, Cast(Element(rois, 1, 0), kI64), x.dim(0));
  for (int64_t k = 1; k < 5; ++k) image = Unsqueeze(image, -1);
  const Val place = (image * Size(x, 2) + inside(rows(axis[0].at), 0)) * Size(x, 3) +
                    inside(columns(axis[1].at), 1);
  const Dims dims = x.dims();
  if (dims.size() != 4) return f.Done();
  const Val pixels = Reshape(Transpose(x, {0, 2, 3, 1}),
                             {graph::DimMul(graph::DimMul(dims[0], dims[2]), dims[3]), dims[1]});
  const Val there = rows(axis[0].there) & columns(axis[1].there);
  const Val taken = Where(Unsqueeze(there, -1), Gather(pixels, place, 0), -INFINITY);
  const Val any = Unsqueeze(axis[0].any, 2) & Unsqueeze(axis[1].any, 1);
  const Val largest = Where(Unsqueeze(any, -1), Reduce("max", taken, {3, 4}, false), 0);
  return f.Result(Transpose(largest, {0, 3, 1, 2}));
}

constexpr OpRow kRows[] = {
    {"MaxRoiPool", 1, ImportMaxRoiPool},
};

}  // namespace

std::span<const OpRow> RegionRows() { return kRows; }

}  // namespace tenon::onnx
