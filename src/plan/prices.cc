#include "plan/prices.h"

namespace tenon::plan {

const std::vector<ShapeWeight>& Prices::Shapes() const {
  static const std::vector<ShapeWeight> kNone;
  return kNone;
}

const Cuts& Prices::FusionCuts() const {
  static const Cuts kNone;
  return kNone;
}

double PriceOf(const Prices* prices, const ops::Algorithm& algorithm, const ops::Site& site,
               const ops::Point& point) {
  if (prices) {
    if (auto known = prices->Find(algorithm, site, point)) return *known;
  }
  return ops::PriceOf(algorithm, site, point);
}

}  // namespace tenon::plan
