// Gradient-boosted trees, as XGBoost makes them, over what a linear model leaves of residuals. The
// library is optional: it is looked for when trees are asked for, so that nothing needs it, neither
// building nor running. One thread and a fixed seed: the same observations give the same trees.
//
// Trees say what to try next, of kernels of networks and of sketches alike. Plans do not follow
// them: a log gives the same library whether XGBoost is on a machine or not.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tune/residual_model.h"

namespace tenon::tune {

/// A point as trees see it.
struct TreeInput {
  Features features{};
  std::string algorithm;
};

class BoostedTrees {
 public:
  /// Whether the library is there: what TENON_XGBOOST names (a path; "": none), else
  /// libxgboost.so.0 or libxgboost.so, wherever the system looks for libraries.
  static bool IsThere();
  /// Nullopt where it is not there, or refuses. At least one input, with a target each.
  static std::optional<BoostedTrees> Fit(const std::vector<TreeInput>& inputs,
                                         const std::vector<double>& targets);
  BoostedTrees(BoostedTrees&&) noexcept = default;
  BoostedTrees& operator=(BoostedTrees&&) noexcept = default;

  /// One for each input; zeros where the library refuses.
  std::vector<double> Predict(const std::vector<TreeInput>& inputs) const;

 private:
  using Handle = std::unique_ptr<void, std::function<void(void*)>>;
  BoostedTrees(std::vector<std::string> algorithms, Handle booster)
      : algorithms_(std::move(algorithms)), booster_(std::move(booster)) {}

  std::vector<std::string> algorithms_;  // a column each, behind the features
  Handle booster_;
};

/// Observations before which trees would learn them by heart.
inline constexpr size_t kLeastForTrees = 200;

/// Trees that correct the model's means, where there are enough observations of several kernels and
/// the error on kernels that nothing was learned from falls by them; nullopt: they do not, or there
/// are none.
std::optional<BoostedTrees> TreesFor(const ResidualModel& model);

/// Trees beside a model that learns: made anew when there is a quarter more to learn from.
class GrowingTrees {
 public:
  /// Whether they are others now, or gone.
  bool Follow(const ResidualModel& model);
  bool are_there() const { return trees_.has_value(); }
  /// What they add to the model's mean of each; zeros where there are none.
  std::vector<double> Predict(const std::vector<TreeInput>& inputs) const;

 private:
  size_t grown_at_ = 0;  // observations
  std::optional<BoostedTrees> trees_;
};

}  // namespace tenon::tune
