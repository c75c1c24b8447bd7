#include "compare_tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

namespace tenon::tools {

namespace {

bool Close(double got, double want, const Tolerance& tolerance) {
  if (got == want || (std::isnan(got) && std::isnan(want))) return true;
  // An infinity is close to nothing but itself; the bound would be infinite too.
  if (!std::isfinite(got) || !std::isfinite(want)) return false;
  return std::fabs(got - want) <= tolerance.absolute + tolerance.relative * std::fabs(want);
}

}  // namespace

std::string IndexText(int64_t flat, std::span<const int64_t> shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t d = shape.size(); d-- > 0; flat /= shape[d]) index[d] = flat % shape[d];
  return fmt::format("[{}]", fmt::join(index, ", "));
}

std::string Difference(const Tensor& got, const Tensor& expected, const Tolerance& tolerance) {
  const Expected<Tensor> typed = expected.AsFloat8(got.dtype());
  const Tensor& want = typed ? *typed : expected;
  if (!(got.dtype() == want.dtype())) {
    return fmt::format("expected {} but got {}", ToString(want.dtype()), ToString(got.dtype()));
  }
  std::span<const int64_t> shape = want.shape();
  if (!std::equal(shape.begin(), shape.end(), got.shape().begin(), got.shape().end())) {
    return fmt::format("expected shape {} but got {}", ShapeText(shape), ShapeText(got.shape()));
  }
  int64_t wrong = 0, worst = 0;
  double most = -1;
  for (int64_t i = 0; i < want.num_elements(); ++i) {
    double g = got.At(i), w = want.At(i);
    if (Close(g, w, tolerance)) continue;
    ++wrong;
    // NaN and infinities are further off than any number.
    double error = std::fabs(g - w);
    if (!std::isfinite(error)) error = HUGE_VAL;
    if (error > most) {
      most = error;
      worst = i;
    }
  }
  if (wrong == 0) return "";
  return fmt::format(
      "{} of {} elements differ by more than {} + {} * |expected|; the worst is {}: expected {} "
      "but got {}",
      wrong, want.num_elements(), tolerance.absolute, tolerance.relative, IndexText(worst, shape),
      want.At(worst), got.At(worst));
}

double WorstDifference(const Tensor& got, const Tensor& want) {
  double worst = 0;
  for (int64_t i = 0; i < want.num_elements(); ++i) {
    const double error = std::fabs(got.At(i) - want.At(i));
    if (std::isfinite(error)) worst = std::max(worst, error);
  }
  return worst;
}

}  // namespace tenon::tools
