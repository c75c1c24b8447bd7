#include "graph/lower/time_alone.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "graph/dims.h"
#include "graph/edit.h"
#include "loop/workspace.h"

namespace tenon::graph {

namespace {

struct AtSizes {
  double elements, price;
};

AtSizes PriceAt(const Graph& region, const ops::Kernel& kernel, const Machine& machine,
                int64_t (*size_of)(const Dim&)) {
  std::map<std::string, Expr> sizes;
  for (const Dim& d : region.dims) sizes[d.var->name] = IndexConst(size_of(d));
  const Graph g = SubstituteDims(region, sizes);
  double elements = 0;
  for (const ValueId v : g.outputs) {
    elements += static_cast<double>(StaticCount(g.type(v).dims).value_or(0));
  }
  const ops::Site site{g, ops::AnchorOf(g), machine};
  const double seconds = ops::PriceOf(*kernel.algorithm, site, kernel.point);
  return {elements, seconds / machine.barrier_seconds * kAloneUnits};
}

int64_t Rounded(double units) {
  constexpr double kMost = 1e15;  // a quarter of an hour; sums of these do not overflow
  return std::llround(std::min(units, kMost));
}

}  // namespace

std::vector<int64_t> TimeAlone(const Graph& region, const ops::Kernel& kernel,
                               const Machine& one_worker) {
  if (!kernel.algorithm) return {};
  const AtSizes last =
      PriceAt(region, kernel, one_worker, [](const Dim& d) { return d.Typical(); });
  const AtSizes first = PriceAt(region, kernel, one_worker, [](const Dim& d) { return d.min; });
  if (last.elements <= first.elements) return {Rounded(last.price), 0};
  // A price that falls with the size, as where another kind of tail begins, counts as level.
  const double slope = std::max(0.0, (last.price - first.price) / (last.elements - first.elements));
  const int64_t per_element = Rounded(std::ceil(slope));
  const double start = last.price - static_cast<double>(per_element) * last.elements;
  return {Rounded(std::max(0.0, start)), per_element};
}

}  // namespace tenon::graph
