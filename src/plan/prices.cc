#include "plan/prices.h"

#include "plan/region.h"

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

std::optional<double> CheapestOf(const graph::Graph& g, graph::NodeId node,
                                 const graph::GraphPassContext& context) {
  const graph::Group group = graph::GroupOf(g, node);
  const ops::Site site{group.region, group.anchor, *context.machine};
  std::optional<double> least;
  for (const ops::Algorithm* a : ops::Algorithms()) {
    if (a->ops.empty() || !ops::Applies(*a, site)) continue;
    a->space(site).ForEach([&](const ops::Point& point) {
      const double seconds = PriceOf(context.prices, *a, site, point);
      if (!least || seconds < *least) least = seconds;
    });
  }
  return least;
}

}  // namespace tenon::plan
