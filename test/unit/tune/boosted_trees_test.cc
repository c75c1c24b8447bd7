// Trees join where they help, and only there; without the library all goes on as before.
#include "tune/boosted_trees.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>

namespace tenon::tune {
namespace {

// Residuals of some kernels: noise, and a step that a sum of features has no way to say, as much as
// is asked for.
ResidualModel Learned(size_t count, size_t kernels, double step) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> unit;
  std::normal_distribution<double> normal;
  ResidualModel model;
  for (size_t i = 0; i < count; ++i) {
    Features x{};
    for (double& f : x) f = unit(random);
    const double away = (x[0] > 0.5) == (x[1] > 0.5) ? step : -step;
    model.Add(x, i % 2 ? "one" : "other", "kernel " + std::to_string(i % kernels),
              away + 0.05 * normal(random));
  }
  return model;
}

TEST(BoostedTrees, AreNoneWhereThereAreFewObservationsOrOneKernel) {
  EXPECT_FALSE(TreesFor(ResidualModel()));
  EXPECT_FALSE(TreesFor(Learned(kLeastForTrees - 1, 5, 0.3)));
  EXPECT_FALSE(TreesFor(Learned(kLeastForTrees, 1, 0.3)));
}

// The library is looked for once in a process, so this is another one.
TEST(BoostedTreesDeathTest, AreNoneWithoutTheLibrary) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const char* path : {"", "/no/such/library.so", "libc.so.6"}) {
    EXPECT_EXIT(
        {
          setenv("TENON_XGBOOST", path, 1);
          const bool none = !BoostedTrees::IsThere() && !TreesFor(Learned(400, 5, 0.3)) &&
                            !BoostedTrees::Fit({TreeInput{}}, {1});
          std::exit(none ? 0 : 1);
        },
        testing::ExitedWithCode(0), "");
  }
}

TEST(BoostedTrees, LearnWhatALinearModelCannotSay) {
  if (!BoostedTrees::IsThere()) GTEST_SKIP() << "XGBoost is not on this machine";
  const ResidualModel model = Learned(400, 5, 0.3);
  const auto trees = TreesFor(model), again = TreesFor(model);
  ASSERT_TRUE(trees && again);
  std::vector<TreeInput> inputs;
  std::vector<double> want;
  const ResidualModel fresh = Learned(600, 5, 0.3);
  for (size_t i = 400; i < fresh.size(); ++i) {
    const Observed& o = fresh.observations()[i];
    inputs.push_back({o.features, o.algorithm});
    want.push_back(o.residual - model.Predict(o.features, o.algorithm, o.kernel).mean);
  }
  const std::vector<double> got = trees->Predict(inputs);
  EXPECT_EQ(got, again->Predict(inputs)) << "the same observations give the same trees";
  double before = 0, after = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    before += want[i] * want[i];
    after += (want[i] - got[i]) * (want[i] - got[i]);
  }
  EXPECT_LT(after, 0.25 * before);
  EXPECT_TRUE(trees->Predict({}).empty());
  // An algorithm that nothing was learned of has the columns of none.
  EXPECT_EQ(trees->Predict({TreeInput{{}, "a third"}}).size(), 1U);
}

// Noise is nothing to learn, so the error on other kernels rises.
TEST(BoostedTrees, StayAwayFromNoise) {
  if (!BoostedTrees::IsThere()) GTEST_SKIP() << "XGBoost is not on this machine";
  EXPECT_FALSE(TreesFor(Learned(400, 5, 0)));
}

}  // namespace
}  // namespace tenon::tune
