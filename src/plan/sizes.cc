// A library has one arrangement of its weights and any number of schedules. So the two are chosen
// one after the other. For layouts, a few sizes are looked at: a layout's price at a size is that
// of the best schedule that it allows there, relative to the best of all at that size, and these
// add up (absolute seconds would let the largest size decide alone). Then one schedule is taken for
// typical sizes, and the range of each dim is walked in octaves (1, 2..3, 4..7, …): where another
// schedule beats it by a good part, that octave is a stretch; neighbours with nearly the same need
// are joined, and the stretches that gain most become variants. For a product of f32[n, 256], n
// in 1..=64, by f32[256, 4], all of whose work below 32 rows takes no longer than waking a second
// worker,
//
//   plan "packed_matmul" layout {nv: 1} schedule {tile_rows: 8, row_block: 8, parallel_loops: 3}
//
// becomes
//
//   plan "packed_matmul" layout {nv: 1} when [n <= 31] schedule {tile_rows: 8, row_block: 4,
//     parallel_loops: 0} schedule {tile_rows: 8, row_block: 8, parallel_loops: 3}
#include "plan/sizes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "graph/dims.h"
#include "ir/visit.h"

namespace tenon::plan {

using graph::Dim;
using graph::Graph;
using graph::Variant;
using ops::Point;

namespace {

// What another schedule must save before it is a kernel of its own, and how many there may be.
constexpr double kWorthIt = 1.15;
constexpr size_t kMostVariants = 2;
// Two neighbouring stretches share a schedule that takes at most so many times as long.
constexpr double kLittle = 1.05;

// The dims that values of the region mention and that have several sizes, by place.
std::vector<size_t> OpenDims(const Graph& region) {
  std::vector<size_t> open;
  for (size_t i = 0; i < region.dims.size(); ++i) {
    const Dim& d = region.dims[i];
    const bool used = std::any_of(region.values.begin(), region.values.end(), [&](const auto& v) {
      const std::vector<Expr>& dims = v.type.tensor().dims;
      return std::any_of(dims.begin(), dims.end(),
                         [&](const Expr& e) { return UsesVar(e, d.var.get()); });
    });
    if (used && d.min < d.max) open.push_back(i);
  }
  return open;
}

// The largest size of the dim that is no larger.
int64_t SizeUpTo(const Dim& d, int64_t size) {
  return d.min + std::max<int64_t>(0, size - d.min) / d.step * d.step;
}

// The region with numbers for dims.
Graph At(const Graph& region, const VarMap& sizes) {
  Graph out = region;
  for (graph::Value& v : out.values) {
    for (Expr& e : v.type.tensor().dims) e = graph::SimplifyDim(Substitute(e, sizes));
  }
  return out;
}

// The region where each of its dims has one size: the least, an odd one between (geometrically in
// the middle), which few tiles divide, and the typical one, the last. Just the region where no dims
// are open.
std::vector<Graph> AtSizes(const Graph& region) {
  const std::vector<size_t> open = OpenDims(region);
  if (open.empty()) return {region};
  std::vector<VarMap> sizes(3);
  for (const Dim& d : region.dims) {
    const int64_t most = d.Typical();
    const double middle = std::sqrt(static_cast<double>(d.LeastSome()) * static_cast<double>(most));
    const int64_t of_dim[] = {d.LeastSome(),
                              SizeUpTo(d, std::min<int64_t>(std::llround(middle) | 1, most)), most};
    for (size_t k = 0; k < 3; ++k) sizes[k][d.var.get()] = IndexConst(of_dim[k]);
  }
  std::vector<Graph> out;
  for (const VarMap& s : sizes) out.push_back(At(region, s));
  return out;
}

// The numbers of a point that show in layouts.
std::vector<int64_t> LayoutOf(const ops::Space& space, const Point& point) {
  std::vector<int64_t> out;
  for (size_t k = 0; k < point.size(); ++k) {
    if (space.knobs()[k].in_layout) out.push_back(point[k].value);
  }
  return out;
}

// A stretch [lo, hi] of a dim, and what is best there.
struct Stretch {
  int64_t lo, hi;
  std::vector<Graph> sizes;  // where it is priced
  Point best;
  double now = 0, least = 0;  // seconds at all of `sizes`: of the point for all sizes, of the best

  double Gain() const { return now / least; }
};

// Looks for stretches of one dim.
class Stretches {
 public:
  Stretches(const ops::Algorithm& algorithm, const ops::Site& site, const Point& point,
            const Price& price, size_t dim)
      : site_(site),
        point_(point),
        price_(price),
        dim_(dim),
        range_(site.region.dims[dim]),
        space_(algorithm.space(site)) {}

  std::vector<Stretch> operator()() {
    std::vector<Stretch> found;
    for (int64_t lo = range_.LeastSome(); lo <= range_.max;) {
      // Each size twice as large as the last; what is beyond the typical one goes by that.
      const int64_t last = lo >= range_.Typical() ? range_.max : std::min(2 * lo - 1, range_.max);
      if (auto s = Best(lo, SizeUpTo(range_, std::max(lo, last)))) {
        if (found.empty() || !Join(&found.back(), *s)) found.push_back(std::move(*s));
      }
      lo = SizeUpTo(range_, std::max(lo, last)) + range_.step;
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const Stretch& a, const Stretch& b) { return a.Gain() > b.Gain(); });
    if (found.size() > kMostVariants) found.resize(kMostVariants);
    std::sort(found.begin(), found.end(),
              [](const Stretch& a, const Stretch& b) { return a.lo < b.lo; });
    return found;
  }

 private:
  double Seconds(const std::vector<Graph>& sizes, const Point& point) const {
    double sum = 0;
    for (const Graph& g : sizes) sum += price_(g, point);
    return sum;
  }

  // One schedule for both, where it is little worse than two.
  bool Join(Stretch* a, const Stretch& b) const {
    if (a->hi + range_.step != b.lo) return false;
    const Point* best = nullptr;
    double least = (a->least + b.least) * kLittle;
    for (const Point* p : {static_cast<const Point*>(&a->best), &b.best}) {
      const double seconds = Seconds(a->sizes, *p) + Seconds(b.sizes, *p);
      if (seconds > least) continue;
      least = seconds;
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
    std::vector<Graph> ends = {AtTypical(lo)};
    const int64_t last = SizeUpTo(range_, std::min(hi, std::max(lo, range_.Typical())));
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

  // The dim has this size, others are typical.
  Graph AtTypical(int64_t size) const {
    VarMap sizes;
    for (size_t i = 0; i < site_.region.dims.size(); ++i) {
      const Dim& d = site_.region.dims[i];
      sizes[d.var.get()] = IndexConst(i == dim_ ? size : d.Typical());
    }
    return At(site_.region, sizes);
  }

  const ops::Site& site_;
  const Point& point_;
  const Price& price_;
  const size_t dim_;
  const Dim& range_;
  const ops::Space space_;
};

// `lo <= dim <= hi`, as far as the dim's range does not say it.
Expr In(const Dim& dim, int64_t lo, int64_t hi) {
  const Expr first = Le(IndexConst(lo), dim.var), last = Le(dim.var, IndexConst(hi));
  if (lo <= dim.LeastSome()) return last;
  return hi == dim.max ? first : And(first, last);
}

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
  const std::vector<Graph> sizes = AtSizes(site.region);
  const ops::Space space = algorithm.space(site);
  space.ForEach([&](const Point& point) {
    const double seconds = price(sizes.back(), point);
    out.push_back({point, seconds, {0, seconds, 0}});
  });
  if (sizes.size() == 1) return out;
  std::map<std::vector<int64_t>, double> layouts;
  for (const Graph& g : sizes) {
    std::map<std::vector<int64_t>, double> least;
    double least_of_all = 0;
    for (RankedPoint& p : out) {
      p.rank.seconds = team_price(g, p.point);
      auto [it, is_new] = least.emplace(LayoutOf(space, p.point), p.rank.seconds);
      if (!is_new) it->second = std::min(it->second, p.rank.seconds);
      if (&p == &out.front() || p.rank.seconds < least_of_all) least_of_all = p.rank.seconds;
    }
    for (RankedPoint& p : out) p.rank.elsewhere += p.rank.seconds / least_of_all;
    for (const auto& [layout, seconds] : least) layouts[layout] += seconds / least_of_all;
  }
  for (RankedPoint& p : out) p.rank.layout = layouts.at(LayoutOf(space, p.point));
  return out;
}

std::vector<Variant> Variants(const ops::Algorithm& algorithm, const ops::Site& site,
                              const Point& point, const Price& price) {
  std::vector<Stretch> best;
  size_t of_dim = 0;
  auto most = [](const std::vector<Stretch>& list) {
    double gain = 1;
    for (const Stretch& s : list) gain = std::max(gain, s.Gain());
    return gain;
  };
  for (const size_t d : OpenDims(site.region)) {
    std::vector<Stretch> here = Stretches(algorithm, site, point, price, d)();
    if (most(here) <= most(best)) continue;
    best = std::move(here);
    of_dim = d;
  }
  std::vector<Variant> out;
  const ops::Space space = algorithm.space(site);
  for (const Stretch& s : best) {
    Variant v{In(site.region.dims[of_dim], s.lo, s.hi), {}};
    for (size_t k = 0; k < s.best.size(); ++k) {
      if (!space.knobs()[k].in_layout) v.schedule.push_back(s.best[k]);
    }
    out.push_back(std::move(v));
  }
  return out;
}

}  // namespace tenon::plan
