#include "plan/prices.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "plan/region.h"
#include "support/check.h"

namespace tenon::plan {

double Prices::Relayout(const graph::TensorType&, const Layout&, double predicted) const {
  return predicted;
}

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

namespace {

// What another form of an operator must save.
constexpr double kOtherFormIsWorthIt = 1.2;

// The cheapest way to compute the graph's first node by itself; infinite where there is only its
// definition.
double CheapestOf(const graph::Graph& g, const Machine& machine) {
  const graph::Group group = graph::GroupOf(g, 0);
  const ops::Site site{group.region, group.anchor, machine};
  double least = std::numeric_limits<double>::infinity();
  for (const ops::Algorithm* a : ops::Algorithms()) {
    if (a->ops.empty() || !ops::Applies(*a, site)) continue;
    a->space(site).ForEach(
        [&](const ops::Point& point) { least = std::min(least, ops::PriceOf(*a, site, point)); });
  }
  return least;
}

}  // namespace

size_t BestForm(const std::vector<graph::Graph>& forms, const Machine& machine) {
  std::vector<std::vector<double>> seconds;  // by form and size
  std::vector<double> least;
  for (const graph::Graph& form : forms) {
    std::vector<double>& at = seconds.emplace_back();
    for (const SizedRegion& s : ThreeSizes(form)) at.push_back(CheapestOf(s.region, machine));
    if (least.empty()) least = at;
    TN_CHECK(least.size() == at.size());
    for (size_t k = 0; k < at.size(); ++k) least[k] = std::min(least[k], at[k]);
  }
  size_t best = 0;
  double cost = 0;
  for (size_t f = 0; f < forms.size(); ++f) {
    double own = 0;
    for (size_t k = 0; k < least.size(); ++k) own += seconds[f][k] / std::max(least[k], 1e-12);
    if (f == 0 && !std::isfinite(own)) return 0;
    if (f == 0) {
      cost = own / kOtherFormIsWorthIt;
    } else if (own < cost) {
      best = f;
      cost = own;
    }
  }
  return best;
}

}  // namespace tenon::plan
