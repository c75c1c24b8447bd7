// Sizes at which a region with open dims is priced, and what of its range deserves a schedule of
// its own.
#pragma once

#include <functional>
#include <vector>

#include "graph/graph.h"
#include "ops/algorithm.h"
#include "plan/shape_weights.h"

namespace tenon::plan {

/// Seconds of one launch of a region, whose anchor and algorithm are known, at some sizes and a
/// point.
using Price = std::function<double(const SizedRegion& at, const ops::Point& point)>;

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
/// another layout cannot); of its schedules those count that are best at typical sizes, or little
/// worse there and better by a good part at the others.
std::vector<RankedPoint> RankPoints(const ops::Algorithm& algorithm, const ops::Site& site,
                                    const Price& price, const Price& team_price);

/// A schedule, and others for stretches of one dim, or of how many rows or positions several
/// dims make.
struct Schedules {
  ops::Point point;  // where no variant is for
  std::vector<graph::Variant> variants;
};
/// Where in the range of one dim another schedule, with the layouts that `point` has, is better by
/// a good part than `point`: up to two stretches of that dim, which do not overlap. Other dims have
/// their typical sizes. Where rows of a product stand on one axis, their number is taken in place
/// of a dim, and so is the number of a feature map's positions. No variants where nothing is
/// gained, or no dim is open. Where a stretch's schedule is nearly as good as `point` at typical
/// sizes, too, it takes the place of `point`, if there is a kernel less then.
Schedules SchedulesFor(const ops::Algorithm& algorithm, const ops::Site& site,
                       const ops::Point& point, const Price& price);

/// A point, and its seconds at each of some sizes.
struct TimedPoint {
  ops::Point point;
  std::vector<double> seconds;
};
/// All points of the algorithm's space, in its order.
std::vector<TimedPoint> PointsAt(const ops::Algorithm& algorithm, const ops::Site& site,
                                 const Price& price, const std::vector<SizedRegion>& sizes);

/// The schedules that a layout of weights is best with at sizes that count.
struct SizedPlan {
  ops::Point point;                      // where no variant is for
  std::vector<graph::Variant> variants;  // for stretches of one dim
  double cost = 0;                       // times over the least ones, by the weights of the sizes
  std::vector<size_t> at = {};           // of the points, which it takes at each of the sizes
};
/// For each layout that the algorithm's points give to weights, in their order, the cheapest plan
/// for these sizes of the site's region: one schedule for all, or, where that saves a part that is
/// worth the code, up to three for stretches of the range of one dim. A size costs its seconds over
/// `least` of it, so that no size decides because it takes longer.
std::vector<SizedPlan> PlansAt(const ops::Algorithm& algorithm, const ops::Site& site,
                               const std::vector<TimedPoint>& points,
                               const std::vector<SizedRegion>& sizes,
                               const std::vector<double>& least);

}  // namespace tenon::plan
