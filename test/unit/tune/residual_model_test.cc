// The model of residuals against the closed form, inverted by hand, and against what it is for: a
// kernel of which nothing was measured profits from others.
#include "tune/residual_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace tenon::tune {
namespace {

using Matrix = std::vector<std::vector<double>>;

// By elimination with pivots: nothing in common with the model's Cholesky factor.
Matrix Inverse(Matrix a) {
  const size_t n = a.size();
  Matrix b(n, std::vector<double>(n, 0));
  for (size_t i = 0; i < n; ++i) b[i][i] = 1;
  for (size_t c = 0; c < n; ++c) {
    size_t pivot = c;
    for (size_t r = c; r < n; ++r) pivot = std::abs(a[r][c]) > std::abs(a[pivot][c]) ? r : pivot;
    std::swap(a[c], a[pivot]);
    std::swap(b[c], b[pivot]);
    const double d = a[c][c];
    for (size_t j = 0; j < n; ++j) {
      a[c][j] /= d;
      b[c][j] /= d;
    }
    for (size_t r = 0; r < n; ++r) {
      if (r == c) continue;
      const double f = a[r][c];
      for (size_t j = 0; j < n; ++j) {
        a[r][j] -= f * a[c][j];
        b[r][j] -= f * b[c][j];
      }
    }
  }
  return b;
}

struct Observation {
  Features x;
  size_t algorithm, kernel;
  double r;
};

std::vector<Observation> Observations(size_t count) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> unit;
  std::normal_distribution<double> normal;
  std::vector<Observation> out;
  for (size_t i = 0; i < count; ++i) {
    Observation o{{}, i % 2, i % 3, 0.2 * normal(random)};
    for (double& x : o.x) x = unit(random);
    out.push_back(o);
  }
  return out;
}

constexpr const char* kAlgorithms[] = {"packed_matmul", "block_matmul"};
constexpr const char* kKernels[] = {"k0", "k1", "k2"};

// The covariance of residuals a priori, from which both moments follow by conditioning: another way
// than by precisions of parameters.
double Covariance(const Observation& a, const Observation& b) {
  double sum = 0;
  for (size_t i = 0; i < kFeatures; ++i) sum += a.x[i] * b.x[i];
  sum *= ResidualModel::kWeight * ResidualModel::kWeight;
  if (a.algorithm == b.algorithm) {
    sum += ResidualModel::kAlgorithm * ResidualModel::kAlgorithm;
    if (a.kernel == b.kernel) sum += ResidualModel::kKernel * ResidualModel::kKernel;
  }
  return sum;
}

TEST(ResidualModel, IsTheClosedForm) {
  for (const size_t count : {size_t{1}, size_t{5}, size_t{40}}) {
    const std::vector<Observation> seen = Observations(count);
    ResidualModel model;
    for (const Observation& o : seen)
      model.Add(o.x, kAlgorithms[o.algorithm], kKernels[o.kernel], o.r);
    Matrix k(count, std::vector<double>(count));
    for (size_t i = 0; i < count; ++i) {
      for (size_t j = 0; j < count; ++j) k[i][j] = Covariance(seen[i], seen[j]);
      k[i][i] += ResidualModel::kPoint * ResidualModel::kPoint;
    }
    const Matrix inverse = Inverse(k);
    for (Observation o : Observations(60)) {
      o.x[0] += 0.5;
      double mean = 0, variance = Covariance(o, o);
      for (size_t i = 0; i < count; ++i) {
        for (size_t j = 0; j < count; ++j) {
          mean += Covariance(o, seen[i]) * inverse[i][j] * seen[j].r;
          variance -= Covariance(o, seen[i]) * inverse[i][j] * Covariance(o, seen[j]);
        }
      }
      variance += ResidualModel::kPoint * ResidualModel::kPoint;
      const Gaussian got = model.Predict(o.x, kAlgorithms[o.algorithm], kKernels[o.kernel]);
      EXPECT_NEAR(got.mean, mean, 1e-8) << count;
      EXPECT_NEAR(got.variance, variance, 1e-8) << count;
    }
  }
}

TEST(ResidualModel, AKernelProfitsFromOthers) {
  ResidualModel model;
  Features x{};
  x[3] = 1;
  const Gaussian before = model.Predict(x, "packed_matmul", "new");
  EXPECT_EQ(before.mean, 0);
  for (const char* kernel : {"a", "b", "c", "d"}) {
    for (int i = 0; i < 4; ++i) model.Add(x, "packed_matmul", kernel, 0.5);
  }
  const Gaussian after = model.Predict(x, "packed_matmul", "new");
  EXPECT_GT(after.mean, 0.3);
  EXPECT_LT(after.variance, before.variance);
  // And knows itself best.
  EXPECT_NEAR(model.Predict(x, "packed_matmul", "a").mean, 0.5, 0.05);
  EXPECT_LT(model.Predict(x, "packed_matmul", "a").variance, after.variance);
}

TEST(ExpectedImprovement, IsTheIntegral) {
  const Gaussian x{0.3, 0.04};
  double sum = 0;
  constexpr double kStep = 1e-4;
  for (double t = -2; t < 0.2; t += kStep) {
    const double z = (t - 0.3) / 0.2;
    sum += (0.2 - t) * std::exp(-z * z / 2) / (0.2 * std::sqrt(2 * M_PI)) * kStep;
  }
  EXPECT_NEAR(ExpectedImprovement(0.2, x), sum, 1e-4);
  EXPECT_NEAR(ExpectedImprovement(5, {0.3, 1e-9}), 4.7, 1e-6);
  EXPECT_NEAR(ExpectedImprovement(-5, {0.3, 1e-9}), 0, 1e-12);
}

}  // namespace
}  // namespace tenon::tune
