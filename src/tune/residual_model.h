// What the analytical model gets wrong, learned from measurements: r = log(measured / predicted).
//
// Bayesian linear regression. A residual is the sum of a weighted sum of features, which all
// kernels of a machine share; an intercept of the algorithm; an intercept of the algorithm on this
// kernel; and what is particular to the point. Each of these is normal with a variance chosen here,
// so the mean is that of ridge regression, and the variance says how much is not known yet: much on
// a kernel of which nothing was measured, less where other kernels have told the weights. That is
// why the tenth kernel begins where the ninth ended.
//
// With the n observations as rows x of X, prior precisions on the diagonal of P and the point's own
// variance v: A = P + XᵀX / v, mean = A⁻¹ Xᵀ r / v, and a prediction at x has the mean xᵀ mean and
// the variance xᵀ A⁻¹ x + v.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "cost/estimate.h"
#include "cost/machine.h"

namespace tenon::tune {

inline constexpr size_t kFeatures = 10;
/// About 0 to 1 each.
using Features = std::array<double, kFeatures>;

/// What decides how wrong a price may be: the shape of tiles, what bounds the work, how it divides.
Features FeaturesOf(const WorkDescription& work, const Machine& machine);

struct Gaussian {
  double mean = 0, variance = 0;
};

/// What was seen of a point.
struct Observed {
  Features features{};
  std::string algorithm, kernel;
  double residual = 0;
};

class ResidualModel {
 public:
  // Standard deviations. That a price is wrong by a third is common, for one kernel as for all of
  // an algorithm; neighbours differ by a tenth.
  static constexpr double kWeight = 0.3, kAlgorithm = 0.3, kKernel = 0.3, kPoint = 0.1;

  void Add(const Features& features, const std::string& algorithm, const std::string& kernel,
           double residual);
  Gaussian Predict(const Features& features, const std::string& algorithm,
                   const std::string& kernel) const;
  size_t size() const { return rows_.size(); }
  const std::vector<Observed>& observations() const { return observations_; }

 private:
  /// The parameters that are not 0 in an observation: features first, then intercepts.
  struct Row {
    Features features;
    size_t algorithm, kernel;  // places of the intercepts
    double residual;
  };
  size_t InterceptOf(const std::string& name);
  void Fit() const;

  std::vector<Observed> observations_;
  std::vector<Row> rows_;                                  // the same, by places
  std::map<std::string, size_t, std::less<>> intercepts_;  // "algorithm", "algorithm kernel"
  std::vector<double> precision_;                          // of each parameter a priori

  // A's Cholesky factor, row by row, and the mean; of the rows so far where `fitted_`.
  mutable bool fitted_ = false;
  mutable std::vector<double> factor_, mean_;
};

/// How much less than `best` a normal number is expected to be: E[max(best - x, 0)].
double ExpectedImprovement(double best, const Gaussian& x);

}  // namespace tenon::tune
