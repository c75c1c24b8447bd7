// What a group costs: records of measurements first, then the model.
#pragma once

#include <optional>

#include "ops/algorithm.h"
#include "plan/shape_weights.h"

namespace tenon::plan {

/// Where planning looks before it asks the model. Called from one thread.
class Prices {
 public:
  virtual ~Prices() = default;
  /// Seconds of one launch of the region by the algorithm at the point; nullopt: not known.
  virtual std::optional<double> Find(const ops::Algorithm& algorithm, const ops::Site& site,
                                     const ops::Point& point) const = 0;
  /// The sizes of open dims that plans are chosen for; empty: those that stand for their ranges.
  virtual const std::vector<ShapeWeight>& Shapes() const;
};

/// What is known, where `prices` is not null and knows it, else what the model predicts.
double PriceOf(const Prices* prices, const ops::Algorithm& algorithm, const ops::Site& site,
               const ops::Point& point);

}  // namespace tenon::plan
