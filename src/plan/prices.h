// What a group costs: records of measurements first, then the model.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/pass/pass.h"
#include "ops/algorithm.h"
#include "plan/shape_weights.h"

namespace tenon::plan {

/// Groups that end earlier than they could: how many of its nodes stay together, by the key of the
/// group (plan/fuse.h). What is behind them is fused by itself.
using Cuts = std::map<std::string, size_t>;

/// Where planning looks before it asks the model. Called from one thread.
class Prices {
 public:
  virtual ~Prices() = default;
  /// Seconds of one launch of the region by the algorithm at the point; nullopt: not known.
  virtual std::optional<double> Find(const ops::Algorithm& algorithm, const ops::Site& site,
                                     const ops::Point& point) const = 0;
  /// Seconds of one relayout of a value of this type, as it lies, which the model says takes
  /// `predicted`.
  virtual double Relayout(const graph::TensorType& from, const Layout& to, double predicted) const;
  /// The sizes of open dims that plans are chosen for; empty: those that stand for their ranges.
  virtual const std::vector<ShapeWeight>& Shapes() const;
  /// What was found faster in parts.
  virtual const Cuts& FusionCuts() const;
};

/// What another one knows (null: nothing), with other cuts.
class WithCuts : public Prices {
 public:
  WithCuts(const Prices* base, Cuts cuts) : base_(base), cuts_(std::move(cuts)) {}
  std::optional<double> Find(const ops::Algorithm& algorithm, const ops::Site& site,
                             const ops::Point& point) const override {
    return base_ ? base_->Find(algorithm, site, point) : std::nullopt;
  }
  double Relayout(const graph::TensorType& from, const Layout& to,
                  double predicted) const override {
    return base_ ? base_->Relayout(from, to, predicted) : predicted;
  }
  const std::vector<ShapeWeight>& Shapes() const override {
    return base_ ? base_->Shapes() : Prices::Shapes();
  }
  const Cuts& FusionCuts() const override { return cuts_; }

 private:
  const Prices* base_;
  const Cuts cuts_;
};

/// What is known, where `prices` is not null and knows it, else what the model predicts.
double PriceOf(const Prices* prices, const ops::Algorithm& algorithm, const ops::Site& site,
               const ops::Point& point);

/// Which of several forms of an operator is taken; the first is its own, and each computes it with
/// its first node, at the same dims. Another than that has to save a good part, for prices are not
/// exact: at the sizes that stand for open dims together, at each of which a form counts by how
/// many times as long as the best one there it takes. A form that has only its definition is none;
/// where that is the first, it stays. The model alone says it: records know the form that was
/// tuned, and a network planned by them is to be made of the kernels that they are about.
size_t BestForm(const std::vector<graph::Graph>& forms, const Machine& machine);

}  // namespace tenon::plan
