// A library has one arrangement of its weights and any number of schedules. So the two are chosen
// one after the other. For layouts, a few sizes are looked at: a layout's price at a size is that
// of the best schedule that it allows there, relative to the best of all at that size, and these
// add up (absolute seconds would let the largest size decide alone). Then one schedule is taken for
// typical sizes, or one that is little worse there and much better at the others, and the range of
// each dim, or of the number of rows where several dims make one axis of rows, is walked in octaves
// (1, 2..3, 4..7, …): where another schedule beats it by a good part, that octave is a stretch;
// neighbours with nearly the same need are joined, and the stretches that gain most become
// variants. For a product of f32[n, 256], n in 1..=64, by f32[256, 4], all of whose work below 32
// rows takes no longer than waking a second worker,
//
//   plan "packed_matmul" layout {nv: 1} schedule {tile_rows: 8, row_block: 8, parallel_loops: 3}
//
// becomes
//
//   plan "packed_matmul" layout {nv: 1} when [n <= 31] schedule {tile_rows: 8, row_block: 4,
//     parallel_loops: 0} schedule {tile_rows: 8, row_block: 8, parallel_loops: 3}
//
// Where prices are measured, at sizes that somebody weighed or that stand for the range, both are
// chosen for these sizes and by the same sum: the range of a dim is cut between them, in up to
// three stretches with a schedule each. What is between two of these sizes goes by the nearer one.
#include "plan/sizes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "graph/dims.h"
#include "ir/visit.h"
#include "ops/micro_kernel.h"
#include "plan/shape_weights.h"

namespace tenon::plan {

using graph::Dim;
using graph::Variant;
using ops::Point;

namespace {

// What another schedule must save before it is a kernel of its own, and how many there may be.
constexpr double kWorthIt = 1.15;
// Where prices are measured less is worth it.
constexpr double kWorthItMeasured = 1.05;
constexpr size_t kMostVariants = 2;
// Sizes share a schedule that takes at most so many times as long as their own.
constexpr double kLittle = 1.05;

// The numbers of a point that show in layouts.
std::vector<int64_t> LayoutOf(const ops::Space& space, const Point& point) {
  std::vector<int64_t> out;
  for (size_t k = 0; k < point.size(); ++k) {
    if (space.knobs()[k].in_layout) out.push_back(point[k].value);
  }
  return out;
}

// What is walked: a dim, or the number of rows or of a map's positions that several of them make.
struct Walk {
  std::vector<size_t> dims;  // of the region, from the outermost
  Expr number;
  int64_t least = 1, typical = 1, max = 1, step = 1;
  bool is_square = false;  // dims grow together, and not the innermost first

  // One dim more.
  void Multiply(const Dim& dim, size_t place) {
    number = number ? number * dim.var : Expr(dim.var);
    dims.push_back(place);
    least *= dim.LeastSome();
    typical *= dim.Typical();
    max = std::min(max * std::min(dim.max, Dim::kNoMax), Dim::kNoMax);
  }
};

// The dim at `place` of its region.
Walk WalkOf(const Dim& dim, size_t place) {
  return {{place}, dim.var, dim.LeastSome(), dim.Typical(), dim.max, dim.step};
}

// The rows of a product that stand on one axis, whichever dims they come from: their number is all
// that matters. Nullopt where there is no such axis, or it is no product of dims.
std::optional<Walk> WalkOfRows(const ops::Site& site) {
  if (site.anchor == graph::kNoNode) return std::nullopt;
  const graph::OpKind op = site.node().op;
  if (op != graph::OpKind::kMatMul && op != graph::OpKind::kSplitMatMul) return std::nullopt;
  const std::vector<Expr>& x = site.input(0).dims;
  if (x.size() < 2 || !ops::StandTogether(site)) return std::nullopt;
  Walk out;
  for (size_t a = 0; a + 1 < x.size(); ++a) {
    if (const auto size = AsInt(x[a])) {
      if (*size != 1) return std::nullopt;
      continue;
    }
    const std::vector<Dim>& dims = site.region.dims;
    const auto dim = std::find_if(dims.begin(), dims.end(),
                                  [&](const Dim& d) { return d.var.get() == x[a].get(); });
    if (dim == dims.end() || dim->step != 1) return std::nullopt;
    out.Multiply(*dim, static_cast<size_t>(dim - dims.begin()));
  }
  return out.dims.size() > 1 ? std::optional(std::move(out)) : std::nullopt;
}

// The only open dim that a size is made of; nullopt where there are more, or none.
std::optional<size_t> OnlyDimOf(const graph::Graph& region, const Expr& size) {
  std::optional<size_t> only;
  for (const size_t d : OpenDims(region)) {
    if (!UsesVar(size, region.dims[d].var.get())) continue;
    if (only) return std::nullopt;
    only = d;
  }
  return only;
}

// The positions of feature maps whose height and width are open: a small image is small in both.
std::optional<Walk> WalkOfPositions(const graph::Graph& region) {
  std::vector<graph::ValueId> border = region.inputs;
  border.insert(border.end(), region.outputs.begin(), region.outputs.end());
  for (const graph::ValueId v : border) {
    const graph::TensorType& type = region.type(v);
    if (type.rank() != 4) continue;
    const auto h = OnlyDimOf(region, type.dims[2]), w = OnlyDimOf(region, type.dims[3]);
    if (!h || !w || h == w) continue;
    Walk out;
    for (const size_t d : {*h, *w}) {
      out.Multiply(region.dims[d], d);
      out.step *= region.dims[d].step;
    }
    out.is_square = true;
    return out;
  }
  return std::nullopt;
}

std::vector<Walk> WalksOf(const ops::Site& site) {
  if (auto rows = WalkOfRows(site)) return {std::move(*rows)};
  std::vector<Walk> out;
  if (auto positions = WalkOfPositions(site.region)) out.push_back(std::move(*positions));
  for (const size_t d : OpenDims(site.region)) {
    const bool is_walked =
        !out.empty() && std::count(out[0].dims.begin(), out[0].dims.end(), d) > 0;
    if (!is_walked) out.push_back(WalkOf(site.region.dims[d], d));
  }
  return out;
}

// The dim's smallest size of at least so much.
int64_t SizeFrom(const Dim& d, int64_t size) { return SizeUpTo(d, size + d.step - 1); }

// A stretch [lo, hi] of what is walked, and what is best there.
struct Stretch {
  int64_t lo, hi;
  std::vector<SizedRegion> sizes;  // where it is priced
  Point best;
  double now = 0, least = 0;  // seconds at all of `sizes`: of the point for all sizes, of the best

  double Gain() const { return now / least; }
};

// Looks for stretches of what is walked.
class Stretches {
 public:
  Stretches(const ops::Algorithm& algorithm, const ops::Site& site, const Point& point,
            const Price& price, const Walk& walk)
      : site_(site), point_(point), price_(price), walk_(walk), space_(algorithm.space(site)) {}

  std::vector<Stretch> operator()() {
    std::vector<Stretch> found;
    for (int64_t lo = walk_.least; lo <= walk_.max;) {
      // Each size twice as large as the last; what is beyond the typical one goes by that.
      const int64_t last = lo >= walk_.typical ? walk_.max : std::min(2 * lo - 1, walk_.max);
      if (auto s = Best(lo, UpTo(std::max(lo, last)))) {
        if (found.empty() || !Join(&found.back(), *s)) found.push_back(std::move(*s));
      }
      lo = UpTo(std::max(lo, last)) + walk_.step;
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const Stretch& a, const Stretch& b) { return a.Gain() > b.Gain(); });
    if (found.size() > kMostVariants) found.resize(kMostVariants);
    std::sort(found.begin(), found.end(),
              [](const Stretch& a, const Stretch& b) { return a.lo < b.lo; });
    return found;
  }

 private:
  double Seconds(const std::vector<SizedRegion>& sizes, const Point& point) const {
    double sum = 0;
    for (const SizedRegion& s : sizes) sum += price_(s, point);
    return sum;
  }

  // One schedule for both, where it is little worse than the best of each.
  bool Join(Stretch* a, const Stretch& b) const {
    if (a->hi + walk_.step != b.lo) return false;
    const Point* best = nullptr;
    double least = 0;
    for (const Point* p : {static_cast<const Point*>(&a->best), &b.best}) {
      const double at_a = Seconds(a->sizes, *p), at_b = Seconds(b.sizes, *p);
      if (at_a > a->least * kLittle || at_b > b.least * kLittle) continue;
      if (best && at_a + at_b >= least) continue;
      least = at_a + at_b;
      best = p;
    }
    if (!best || (a->now + b.now) / least <= kWorthIt) return false;
    a->best = Point(*best);
    a->hi = b.hi;
    a->now += b.now;
    a->least = least;
    a->sizes.insert(a->sizes.end(), b.sizes.begin(), b.sizes.end());
    return true;
  }

  // The cheapest schedule for sizes from lo to hi; nullopt where it is not worth it.
  std::optional<Stretch> Best(int64_t lo, int64_t hi) const {
    std::vector<SizedRegion> ends = {AtTypical(lo)};
    const int64_t last = UpTo(std::min(hi, std::max(lo, walk_.typical)));
    if (lo < last) ends.push_back(AtTypical(last));
    const double now = Seconds(ends, point_);
    Stretch out{lo, hi, std::move(ends), point_, now, now};
    space_.ForEach([&](const Point& p) {
      if (LayoutOf(space_, p) != LayoutOf(space_, point_)) return;
      const double seconds = Seconds(out.sizes, p);
      if (seconds >= out.least * (1 - 1e-9)) return;
      out.least = seconds;
      out.best = p;
    });
    return out.Gain() > kWorthIt ? std::optional(std::move(out)) : std::nullopt;
  }

  // The largest size up to that.
  int64_t UpTo(int64_t size) const {
    return walk_.least + (size - walk_.least) / walk_.step * walk_.step;
  }

  // What is walked has this size, or a bit more where several dims make it; the rest is typical.
  SizedRegion AtTypical(int64_t size) const {
    SizedRegion out;
    for (const Dim& d : site_.region.dims) out.sizes.push_back(d.Typical());
    const double side =
        std::sqrt(static_cast<double>(size) / static_cast<double>(walk_.least));  // of a square
    for (size_t k = walk_.dims.size(); k-- > 0;) {
      const size_t d = walk_.dims[k];
      const Dim& dim = site_.region.dims[d];
      int64_t here = size;
      if (walk_.is_square && k > 0)
        here = std::llround(side * static_cast<double>(dim.LeastSome())) - dim.step / 2;
      out.sizes[d] = std::clamp(SizeFrom(dim, here), dim.LeastSome(), dim.max);
      size = (size + out.sizes[d] - 1) / out.sizes[d];
    }
    out.region = AtSizes(site_.region, SizesOf(site_.region, out.sizes));
    return out;
  }

  const ops::Site& site_;
  const Point& point_;
  const Price& price_;
  const Walk& walk_;
  const ops::Space space_;
};

struct WalkStretches {
  Walk walk;
  std::vector<Stretch> stretches;
};

// Those of the walk where most is gained.
WalkStretches BestStretches(const ops::Algorithm& algorithm, const ops::Site& site,
                            const Point& point, const Price& price) {
  WalkStretches best;
  auto most = [](const std::vector<Stretch>& list) {
    double gain = 1;
    for (const Stretch& s : list) gain = std::max(gain, s.Gain());
    return gain;
  };
  for (const Walk& walk : WalksOf(site)) {
    std::vector<Stretch> here = Stretches(algorithm, site, point, price, walk)();
    if (most(here) > most(best.stretches)) best = {walk, std::move(here)};
  }
  return best;
}

// `lo <= number <= hi`, as far as its range from `least` to `most` does not say it.
Expr In(const Expr& number, int64_t least, int64_t most, int64_t lo, int64_t hi) {
  Expr first = Le(IndexConst(lo), number), last = Le(number, IndexConst(hi));
  if (lo <= least) return last;
  return hi == most ? first : And(first, last);
}

Variant VariantFor(const ops::Space& space, Expr when, const Point& point) {
  Variant v{std::move(when), {}};
  for (size_t k = 0; k < point.size(); ++k) {
    if (!space.knobs()[k].in_layout) v.schedule.push_back(point[k]);
  }
  return v;
}

// A point, its place, and what it costs at each of some sizes.
struct CostedPoint {
  const Point* point;
  size_t place;
  std::vector<double> costs;
};

SizedPlan OneScheduleFor(const std::vector<SizedRegion>& sizes,
                         const std::vector<CostedPoint>& points) {
  SizedPlan out;
  for (const CostedPoint& p : points) {
    const double cost = std::accumulate(p.costs.begin(), p.costs.end(), 0.0);
    if (!out.at.empty() && cost >= out.cost * (1 - 1e-9)) continue;
    out = {*p.point, {}, cost, std::vector<size_t>(sizes.size(), p.place)};
  }
  return out;
}

// Ways to cut the range of one dim into stretches, between sizes that count.
class RangeCuts {
 public:
  RangeCuts(const Dim& range, size_t dim, const std::vector<SizedRegion>& sizes,
            const std::vector<CostedPoint>& points, const ops::Space& space)
      : range_(range), sizes_(sizes), points_(points), space_(space) {
    for (size_t i = 0; i < sizes.size(); ++i) places_[sizes[i].sizes[dim]].push_back(i);
    for (const auto& [size, at] : places_) steps_.push_back(size);
    for (size_t first = 0; first < steps_.size(); ++first) AddPartsFrom(first);
  }

  // Each schedule but that of the dearest stretch has to be worth it. Nullopt: none is.
  std::optional<SizedPlan> Best() {
    Extend(0, {});
    if (best_.size() < 2) return std::nullopt;
    return Made();
  }

 private:
  struct Part {
    size_t first, last;  // of steps_
    const CostedPoint* point;
    double cost;
  };

  // With the cheapest point for each.
  void AddPartsFrom(size_t first) {
    std::vector<double> costs(points_.size(), 0);
    for (size_t last = first; last < steps_.size(); ++last) {
      Part part{first, last, nullptr, 0};
      for (size_t p = 0; p < points_.size(); ++p) {
        for (const size_t i : places_.at(steps_[last])) costs[p] += points_[p].costs[i];
        if (part.point && costs[p] >= part.cost * (1 - 1e-9)) continue;
        part.point = &points_[p];
        part.cost = costs[p];
      }
      parts_[{first, last}] = part;
    }
  }

  void Extend(size_t first, std::vector<Part> parts) {
    if (first == steps_.size()) {
      double cost = 0, most = 0;
      for (const Part& p : parts) {
        cost += p.cost * kWorthItMeasured;
        most = std::max(most, p.cost);
      }
      cost -= most * (kWorthItMeasured - 1);
      if (!best_.empty() && cost >= least_ * (1 - 1e-9)) return;
      best_ = std::move(parts);
      least_ = cost;
      return;
    }
    if (parts.size() > kMostVariants) return;
    for (size_t last = first; last < steps_.size(); ++last) {
      std::vector<Part> next = parts;
      next.push_back(parts_.at({first, last}));
      Extend(last + 1, std::move(next));
    }
  }

  // The last size of the range that goes by the step and not by the next one.
  int64_t End(size_t step) const {
    if (step + 1 == steps_.size()) return range_.max;
    const double middle =
        std::sqrt(static_cast<double>(steps_[step]) * static_cast<double>(steps_[step + 1]));
    return std::max(SizeUpTo(range_, static_cast<int64_t>(middle)), steps_[step]);
  }

  // The last of the stretches has what no variant is for.
  SizedPlan Made() const {
    SizedPlan out{*best_.back().point->point, {}, 0, std::vector<size_t>(sizes_.size())};
    for (const Part& p : best_) {
      out.cost += p.cost;
      for (size_t step = p.first; step <= p.last; ++step) {
        for (const size_t i : places_.at(steps_[step])) out.at[i] = p.point->place;
      }
      const int64_t lo = p.first == 0 ? range_.LeastSome() : End(p.first - 1) + range_.step;
      if (&p == &best_.back()) continue;
      const Expr when = In(range_.var, range_.LeastSome(), range_.max, lo, End(p.last));
      out.variants.push_back(VariantFor(space_, when, *p.point->point));
    }
    return out;
  }

  const Dim& range_;
  const std::vector<SizedRegion>& sizes_;
  const std::vector<CostedPoint>& points_;
  const ops::Space& space_;
  std::map<int64_t, std::vector<size_t>> places_;  // of the sizes, by that of the dim
  std::vector<int64_t> steps_;                     // their keys
  std::map<std::pair<size_t, size_t>, Part> parts_;
  std::vector<Part> best_;
  double least_ = 0;
};

}  // namespace

bool Rank::IsBetterThan(const Rank& other) const {
  constexpr double kLess = 1 - 1e-9;
  const std::array<double, 3> own = {layout, seconds, elsewhere};
  const std::array<double, 3> its = {other.layout, other.seconds, other.elsewhere};
  for (size_t i = 0; i < own.size(); ++i) {
    if (own[i] < its[i] * kLess) return true;
    if (own[i] * kLess > its[i]) return false;
  }
  return false;
}

std::vector<RankedPoint> RankPoints(const ops::Algorithm& algorithm, const ops::Site& site,
                                    const Price& price, const Price& team_price) {
  std::vector<RankedPoint> out;
  const std::vector<SizedRegion> sizes = ThreeSizes(site.region);
  const ops::Space space = algorithm.space(site);
  space.ForEach([&](const Point& point) {
    const double seconds = price(sizes.back(), point);
    out.push_back({point, seconds, {0, seconds, 0}});
  });
  if (sizes.size() == 1) return out;
  std::map<std::vector<int64_t>, double> layouts;
  for (const SizedRegion& s : sizes) {
    std::map<std::vector<int64_t>, double> least;
    double least_of_all = 0;
    for (RankedPoint& p : out) {
      p.rank.seconds = team_price(s, p.point);
      auto [it, is_new] = least.emplace(LayoutOf(space, p.point), p.rank.seconds);
      if (!is_new) it->second = std::min(it->second, p.rank.seconds);
      if (&p == &out.front() || p.rank.seconds < least_of_all) least_of_all = p.rank.seconds;
    }
    for (RankedPoint& p : out) p.rank.elsewhere += p.rank.seconds / least_of_all;
    for (const auto& [layout, seconds] : least) layouts[layout] += seconds / least_of_all;
  }
  std::map<std::vector<int64_t>, Rank> best;  // of a layout's schedules
  for (RankedPoint& p : out) {
    p.rank.layout = layouts.at(LayoutOf(space, p.point));
    auto [it, is_new] = best.emplace(LayoutOf(space, p.point), p.rank);
    if (!is_new && p.rank.IsBetterThan(it->second)) it->second = p.rank;
  }
  // One that is little worse at the typical size and better by a good part elsewhere is as good.
  for (RankedPoint& p : out) {
    const Rank& least = best.at(LayoutOf(space, p.point));
    if (p.rank.seconds <= least.seconds * kLittle &&
        p.rank.elsewhere * kWorthIt < least.elsewhere) {
      p.rank.seconds = least.seconds;
    }
  }
  return out;
}

Schedules SchedulesFor(const ops::Algorithm& algorithm, const ops::Site& site, const Point& point,
                       const Price& price) {
  const ops::Space space = algorithm.space(site);
  WalkStretches best = BestStretches(algorithm, site, point, price);
  Point rest = point;
  if (!best.stretches.empty()) {
    const SizedRegion typical = ThreeSizes(site.region).back();
    const double most = price(typical, point) * kLittle;
    const std::vector<Stretch> candidates = best.stretches;
    for (const Stretch& s : candidates) {
      if (price(typical, s.best) > most) continue;
      WalkStretches fewer = BestStretches(algorithm, site, s.best, price);
      if (fewer.stretches.size() >= best.stretches.size()) continue;
      best = std::move(fewer);
      rest = Point(s.best);
    }
  }
  Schedules out{std::move(rest), {}};
  const Walk& walk = best.walk;
  for (const Stretch& s : best.stretches) {
    const Expr when = In(walk.number, walk.least, walk.max, s.lo, s.hi);
    out.variants.push_back(VariantFor(space, when, s.best));
  }
  return out;
}

std::vector<TimedPoint> PointsAt(const ops::Algorithm& algorithm, const ops::Site& site,
                                 const Price& price, const std::vector<SizedRegion>& sizes) {
  std::vector<TimedPoint> out;
  algorithm.space(site).ForEach([&](const Point& point) {
    TimedPoint& p = out.emplace_back(TimedPoint{point, {}});
    for (const SizedRegion& s : sizes) p.seconds.push_back(price(s, point));
  });
  return out;
}

std::vector<SizedPlan> PlansAt(const ops::Algorithm& algorithm, const ops::Site& site,
                               const std::vector<TimedPoint>& points,
                               const std::vector<SizedRegion>& sizes,
                               const std::vector<double>& least) {
  if (points.empty()) return {};
  const ops::Space space = algorithm.space(site);
  std::vector<std::vector<int64_t>> layouts;
  std::vector<std::vector<CostedPoint>> costed;  // by layout
  for (size_t place = 0; place < points.size(); ++place) {
    const TimedPoint& p = points[place];
    const std::vector<int64_t> layout = LayoutOf(space, p.point);
    const auto at = std::find(layouts.begin(), layouts.end(), layout);
    const auto of = static_cast<size_t>(at - layouts.begin());
    if (at == layouts.end()) {
      layouts.push_back(layout);
      costed.emplace_back();
    }
    CostedPoint& c = costed[of].emplace_back(CostedPoint{&p.point, place, {}});
    for (size_t i = 0; i < sizes.size(); ++i)
      c.costs.push_back(sizes[i].weight * p.seconds[i] / std::max(least[i], 1e-12));
  }
  std::vector<SizedPlan> out;
  for (const std::vector<CostedPoint>& of : costed) {
    SizedPlan best = OneScheduleFor(sizes, of);
    for (const size_t dim : OpenDims(site.region)) {
      std::optional<SizedPlan> cut = RangeCuts(site.region.dims[dim], dim, sizes, of, space).Best();
      if (cut && cut->cost < best.cost * (1 - 1e-9)) best = *std::move(cut);
    }
    out.push_back(std::move(best));
  }
  return out;
}

}  // namespace tenon::plan
