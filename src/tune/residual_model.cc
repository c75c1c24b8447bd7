#include "tune/residual_model.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tenon::tune {

namespace {

double Part(double x, double whole) { return whole > 0 ? std::clamp(x / whole, 0.0, 1.0) : 0; }

// Powers of two up to 2^most, as 0 to 1.
double Logarithm(double x, double most) {
  return std::clamp(std::log2(std::max(x, 1.0)) / most, 0.0, 1.0);
}

}  // namespace

Features FeaturesOf(const WorkDescription& work, const Machine& machine) {
  const double seconds = EstimateSeconds(work, machine);
  const TileSteps* tile = &work.tile_steps[0];
  double steps = 0;
  for (const TileSteps& t : work.tile_steps) {
    steps += t.steps;
    if (t.steps * static_cast<double>(t.rows * t.vectors) >
        tile->steps * static_cast<double>(tile->rows * tile->vectors))
      tile = &t;
  }
  const auto tiles = static_cast<double>(std::max<int64_t>(work.tiles, 1));
  const auto rows = static_cast<double>(tile->rows), vectors = static_cast<double>(tile->vectors);
  const auto registers = static_cast<double>(std::max<int64_t>(machine.registers, 1));
  // Seconds of each part alone, as a part of the whole.
  auto alone = [&](const auto& keep) {
    WorkDescription part = work;
    part.bytes = {};
    part.tile_steps = {};
    part.scalar_ops = part.vector_ops = part.packed_bytes = 0;
    keep(&part);
    return Part(EstimateSeconds(part, machine), seconds);
  };
  Features out{};
  out[0] = steps > 0 ? Logarithm(rows, 4) : 0;
  out[1] = steps > 0 ? Logarithm(vectors, 4) : 0;
  out[2] = steps > 0 ? Part(rows * vectors, registers) : 0;
  out[3] = Logarithm(steps / tiles, 16);
  out[4] = Logarithm(tiles, 16);
  out[5] = alone([&](WorkDescription* p) { p->tile_steps = work.tile_steps; });
  out[6] = alone([&](WorkDescription* p) { p->bytes[0] = work.bytes[0]; });
  out[7] = alone([&](WorkDescription* p) {
    for (size_t level = 1; level < work.bytes.size(); ++level) p->bytes[level] = work.bytes[level];
  });
  out[8] = alone([&](WorkDescription* p) {
    p->scalar_ops = work.scalar_ops;
    p->vector_ops = work.vector_ops;
  });
  out[9] = alone([&](WorkDescription* p) { p->packed_bytes = work.packed_bytes; });
  return out;
}

size_t ResidualModel::InterceptOf(const std::string& name) {
  const auto [it, fresh] = intercepts_.emplace(name, kFeatures + intercepts_.size());
  return it->second;
}

void ResidualModel::Add(const Features& features, const std::string& algorithm,
                        const std::string& kernel, double residual) {
  if (precision_.empty()) precision_.assign(kFeatures, 1 / (kWeight * kWeight));
  Row row{features, InterceptOf(algorithm), 0, residual};
  precision_.resize(kFeatures + intercepts_.size(), 1 / (kAlgorithm * kAlgorithm));
  row.kernel = InterceptOf(algorithm + " " + kernel);
  precision_.resize(kFeatures + intercepts_.size(), 1 / (kKernel * kKernel));
  rows_.push_back(row);
  observations_.push_back({features, algorithm, kernel, residual});
  fitted_ = false;
}

// A has as many rows as there are parameters: ten, and two for each kernel and algorithm.
void ResidualModel::Fit() const {
  const size_t n = precision_.size();
  std::vector<double> a(n * n, 0.0), b(n, 0.0);
  for (size_t i = 0; i < n; ++i) a[i * n + i] = precision_[i];
  constexpr double kSure = 1 / (kPoint * kPoint);
  for (const Row& row : rows_) {
    std::array<std::pair<size_t, double>, kFeatures + 2> entries;
    for (size_t i = 0; i < kFeatures; ++i) entries[i] = {i, row.features[i]};
    entries[kFeatures] = {row.algorithm, 1};
    entries[kFeatures + 1] = {row.kernel, 1};
    for (const auto& [i, x] : entries) {
      b[i] += x * row.residual * kSure;
      for (const auto& [j, y] : entries) a[i * n + j] += x * y * kSure;
    }
  }
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      double sum = a[i * n + j];
      for (size_t k = 0; k < j; ++k) sum -= a[i * n + k] * a[j * n + k];
      a[i * n + j] = i == j ? std::sqrt(sum) : sum / a[j * n + j];
    }
  }
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < i; ++k) b[i] -= a[i * n + k] * b[k];
    b[i] /= a[i * n + i];
  }
  for (size_t i = n; i-- > 0;) {
    for (size_t k = i + 1; k < n; ++k) b[i] -= a[k * n + i] * b[k];
    b[i] /= a[i * n + i];
  }
  factor_ = std::move(a);
  mean_ = std::move(b);
  fitted_ = true;
}

Gaussian ResidualModel::Predict(const Features& features, const std::string& algorithm,
                                const std::string& kernel) const {
  Gaussian out{0, kPoint * kPoint};
  const auto shared = intercepts_.find(algorithm), own = intercepts_.find(algorithm + " " + kernel);
  // An intercept that nothing was observed of is what it was a priori.
  if (shared == intercepts_.end()) out.variance += kAlgorithm * kAlgorithm;
  if (own == intercepts_.end()) out.variance += kKernel * kKernel;
  if (rows_.empty()) {
    for (const double x : features) out.variance += x * x * kWeight * kWeight;
    return out;
  }
  if (!fitted_) Fit();
  const size_t n = precision_.size();
  std::vector<double> x(n, 0.0);
  std::copy(features.begin(), features.end(), x.begin());
  if (shared != intercepts_.end()) x[shared->second] = 1;
  if (own != intercepts_.end()) x[own->second] = 1;
  for (size_t i = 0; i < n; ++i) out.mean += x[i] * mean_[i];
  // xᵀ A⁻¹ x = |L⁻¹ x|².
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < i; ++k) x[i] -= factor_[i * n + k] * x[k];
    x[i] /= factor_[i * n + i];
    out.variance += x[i] * x[i];
  }
  return out;
}

double ExpectedImprovement(double best, const Gaussian& x) {
  const double deviation = std::sqrt(std::max(x.variance, 1e-12));
  const double z = (best - x.mean) / deviation;
  const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
  const double below = std::erfc(-z / std::numbers::sqrt2) / 2;
  return std::max(0.0, (best - x.mean) * below + deviation * density);
}

}  // namespace tenon::tune
