// Sizes at which a region with open dims is priced, and what of its range deserves a schedule of
// its own.
#pragma once

#include <functional>
#include <vector>

#include "graph/graph.h"
#include "ops/algorithm.h"
#include "plan/shape_weights.h"

namespace tenon::plan {

/// Seconds of one launch of a region, whose anchor and algorithm are known, at a point.
using Price = std::function<double(const graph::Graph& region, const ops::Point& point)>;

/// How good a point is: first the layouts that it gives to weights, which all sizes share, then its
/// schedule, at typical sizes and then at others. Less is better; differences that sums in another
/// order make are none.
struct Rank {
  double layout = 0, seconds = 0, elsewhere = 0;
  bool IsBetterThan(const Rank& other) const;
};
struct RankedPoint {
  ops::Point point;
  double seconds = 0;  // by `price`, at typical sizes
  Rank rank;
};
/// All points of the algorithm's space in its order. Where no dims are open, a point's rank is its
/// seconds. Else `team_price` decides: a layout is as good as its best schedules are at each of
/// some sizes, relative to the best of all there (another schedule can be taken at some sizes,
/// another layout cannot); of schedules those count that are best at typical sizes. `known`: the
/// sizes that count instead, by their weights, for layouts and schedules alike; null: nobody says.
std::vector<RankedPoint> RankPoints(const ops::Algorithm& algorithm, const ops::Site& site,
                                    const Price& price, const Price& team_price,
                                    const std::vector<SizedRegion>* known = nullptr);

/// Where in the range of one dim another schedule, with the layouts that `point` has, is better by
/// a good part than `point`: up to two stretches of that dim, which do not overlap. Other dims have
/// their typical sizes. Empty where nothing is gained, or no dim is open. Of `known` sizes those
/// within a stretch say what is best there.
std::vector<graph::Variant> Variants(const ops::Algorithm& algorithm, const ops::Site& site,
                                     const ops::Point& point, const Price& price,
                                     const std::vector<SizedRegion>* known = nullptr);

}  // namespace tenon::plan
