#include "tune/boosted_trees.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <set>

namespace tenon::tune {

namespace {

// Kernels that are left out in turn, at most.
constexpr size_t kMostLeftOut = 16;
constexpr int kRounds = 64;

// The functions of XGBoost's C interface that are used; 0 is success.
struct Xgboost {
  using MatrixFree = int (*)(void*);
  int (*matrix)(const float* data, uint64_t rows, uint64_t columns, float missing, void** out);
  int (*set_floats)(void* matrix, const char* field, const float* values, uint64_t count);
  MatrixFree free_matrix;
  int (*booster)(void* const* matrices, uint64_t count, void** out);
  int (*set)(void* booster, const char* name, const char* value);
  int (*update)(void* booster, int round, void* matrix);
  int (*predict)(void* booster, void* matrix, int options, unsigned trees, int training,
                 uint64_t* count, const float** out);
  int (*free_booster)(void*);
};

void* OpenXgboost() {
  if (const char* given = std::getenv("TENON_XGBOOST"))
    return *given ? dlopen(given, RTLD_NOW | RTLD_LOCAL) : nullptr;
  for (const char* name : {"libxgboost.so.0", "libxgboost.so"}) {
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

std::optional<Xgboost> FindXgboost() {
  void* library = OpenXgboost();
  if (!library) return std::nullopt;
  Xgboost out{};
  bool whole = true;
  const auto find = [&](const char* name, auto* function) {
    *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(library, name));
    whole &= *function != nullptr;
  };
  find("XGDMatrixCreateFromMat", &out.matrix);
  find("XGDMatrixSetFloatInfo", &out.set_floats);
  find("XGDMatrixFree", &out.free_matrix);
  find("XGBoosterCreate", &out.booster);
  find("XGBoosterSetParam", &out.set);
  find("XGBoosterUpdateOneIter", &out.update);
  find("XGBoosterPredict", &out.predict);
  find("XGBoosterFree", &out.free_booster);
  return whole ? std::optional(out) : std::nullopt;
}

// Null: it is not there. Looked for once; it stays loaded.
const Xgboost* TheXgboost() {
  static const std::optional<Xgboost> kFound = FindXgboost();
  return kFound ? &*kFound : nullptr;
}

using Matrix = std::unique_ptr<void, int (*)(void*)>;

// Rows of features, and of a 1 where the algorithm is. Null: it was refused.
Matrix MatrixOf(const Xgboost& library, const std::vector<TreeInput>& inputs,
                const std::vector<std::string>& algorithms) {
  std::vector<float> values;
  for (const TreeInput& input : inputs) {
    for (const double x : input.features) values.push_back(static_cast<float>(x));
    for (const std::string& a : algorithms) values.push_back(input.algorithm == a ? 1 : 0);
  }
  // No number of ours is missing.
  constexpr float kMissing = -1e30F;
  void* matrix = nullptr;
  if (library.matrix(values.data(), inputs.size(), kFeatures + algorithms.size(), kMissing,
                     &matrix) != 0)
    matrix = nullptr;
  return {matrix, library.free_matrix};
}

// A model without the observations of one kernel.
ResidualModel Without(const ResidualModel& model, const std::string& kernel) {
  ResidualModel out;
  for (const Observed& o : model.observations()) {
    if (o.kernel != kernel) out.Add(o.features, o.algorithm, o.kernel, o.residual);
  }
  return out;
}

std::optional<BoostedTrees> FitTo(const ResidualModel& model) {
  std::vector<TreeInput> inputs;
  std::vector<double> targets;
  for (const Observed& o : model.observations()) {
    inputs.push_back({o.features, o.algorithm});
    targets.push_back(o.residual - model.Predict(o.features, o.algorithm, o.kernel).mean);
  }
  return BoostedTrees::Fit(inputs, targets);
}

}  // namespace

bool BoostedTrees::IsThere() { return TheXgboost() != nullptr; }

std::optional<BoostedTrees> BoostedTrees::Fit(const std::vector<TreeInput>& inputs,
                                              const std::vector<double>& targets) {
  const Xgboost* library = TheXgboost();
  if (!library || inputs.empty()) return std::nullopt;
  std::set<std::string> names;
  for (const TreeInput& input : inputs) names.insert(input.algorithm);
  std::vector<std::string> algorithms(names.begin(), names.end());
  const Matrix matrix = MatrixOf(*library, inputs, algorithms);
  const std::vector<float> labels(targets.begin(), targets.end());
  if (!matrix || library->set_floats(matrix.get(), "label", labels.data(), labels.size()) != 0)
    return std::nullopt;
  void* made = nullptr;
  void* const matrices[] = {matrix.get()};
  if (library->booster(matrices, 1, &made) != 0) return std::nullopt;
  Handle booster(made, library->free_booster);
  constexpr const char* kParameters[][2] = {{"objective", "reg:squarederror"},
                                            {"base_score", "0"},
                                            {"tree_method", "exact"},
                                            {"max_depth", "4"},
                                            {"eta", "0.1"},
                                            {"min_child_weight", "4"},
                                            {"nthread", "1"},
                                            {"seed", "0"},
                                            {"verbosity", "0"}};
  for (const auto& [name, value] : kParameters) {
    if (library->set(made, name, value) != 0) return std::nullopt;
  }
  for (int round = 0; round < kRounds; ++round) {
    if (library->update(made, round, matrix.get()) != 0) return std::nullopt;
  }
  return BoostedTrees(std::move(algorithms), std::move(booster));
}

std::vector<double> BoostedTrees::Predict(const std::vector<TreeInput>& inputs) const {
  std::vector<double> out(inputs.size(), 0.0);
  if (inputs.empty()) return out;
  const Xgboost& library = *TheXgboost();
  const Matrix matrix = MatrixOf(library, inputs, algorithms_);
  uint64_t count = 0;
  const float* values = nullptr;
  if (!matrix || library.predict(booster_.get(), matrix.get(), 0, 0, 0, &count, &values) != 0 ||
      count != inputs.size())
    return out;
  std::copy(values, values + count, out.begin());
  return out;
}

std::optional<BoostedTrees> TreesFor(const ResidualModel& model) {
  if (model.size() < kLeastForTrees || !BoostedTrees::IsThere()) return std::nullopt;
  std::set<std::string> names;
  for (const Observed& o : model.observations()) names.insert(o.kernel);
  if (names.size() < 2) return std::nullopt;
  const std::vector<std::string> kernels(names.begin(), names.end());
  const size_t step = (kernels.size() + kMostLeftOut - 1) / kMostLeftOut;
  double without_trees = 0, with_trees = 0;  // sums of squared errors
  for (size_t k = 0; k < kernels.size(); k += step) {
    const ResidualModel others = Without(model, kernels[k]);
    const std::optional<BoostedTrees> trees =
        others.size() > 0 ? FitTo(others) : std::optional<BoostedTrees>();
    if (!trees) return std::nullopt;
    std::vector<TreeInput> inputs;
    std::vector<double> errors;
    for (const Observed& o : model.observations()) {
      if (o.kernel != kernels[k]) continue;
      inputs.push_back({o.features, o.algorithm});
      errors.push_back(o.residual - others.Predict(o.features, o.algorithm, o.kernel).mean);
    }
    const std::vector<double> corrections = trees->Predict(inputs);
    for (size_t i = 0; i < errors.size(); ++i) {
      without_trees += errors[i] * errors[i];
      with_trees += (errors[i] - corrections[i]) * (errors[i] - corrections[i]);
    }
  }
  return with_trees < without_trees ? FitTo(model) : std::nullopt;
}

bool GrowingTrees::Follow(const ResidualModel& model) {
  if (model.size() < std::max(kLeastForTrees, grown_at_ + grown_at_ / 4)) return false;
  grown_at_ = model.size();
  const bool were_there = are_there();
  trees_ = TreesFor(model);
  return were_there || are_there();
}

std::vector<double> GrowingTrees::Predict(const std::vector<TreeInput>& inputs) const {
  return trees_ ? trees_->Predict(inputs) : std::vector<double>(inputs.size(), 0.0);
}

}  // namespace tenon::tune
