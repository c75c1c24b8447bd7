#include "graph/lower/time_alone.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "graph/dims.h"
#include "graph/edit.h"
#include "ir/visit.h"
#include "loop/workspace.h"

namespace tenon::graph {

namespace {

struct AtSizes {
  double elements, price;
};

// Nullopt where the arguments' sizes are not the region's alone.
std::optional<AtSizes> PriceAt(const Graph& region, std::span<const Region> args,
                               const ops::Kernel& kernel, const Machine& machine,
                               int64_t (*size_of)(const Dim&)) {
  std::map<std::string, Expr> sizes;
  VarMap vars;
  for (const Dim& d : region.dims) {
    const Expr size = IndexConst(size_of(d));
    sizes[d.var->name] = size;
    vars[d.var.get()] = size;
  }
  const Graph g = SubstituteDims(region, sizes);
  const auto elements = AsInt(SimplifyDim(Substitute(ElementsOfOpenSize(args), vars)));
  if (!elements) return std::nullopt;
  const ops::Site site{g, ops::AnchorOf(g), machine};
  const double seconds = ops::PriceOf(*kernel.algorithm, site, kernel.point);
  return AtSizes{static_cast<double>(*elements), seconds / machine.barrier_seconds * kAloneUnits};
}

int64_t Rounded(double units) {
  constexpr double kMost = 1e15;  // a quarter of an hour; sums of these do not overflow
  return std::llround(std::clamp(units, -kMost, kMost));
}

}  // namespace

std::vector<int64_t> TimeAlone(const Graph& region, std::span<const Region> args,
                               const ops::Kernel& kernel, const Machine& one_worker) {
  if (!kernel.algorithm) return {};
  const auto last =
      PriceAt(region, args, kernel, one_worker, [](const Dim& d) { return d.Typical(); });
  const auto first = PriceAt(region, args, kernel, one_worker, [](const Dim& d) { return d.min; });
  if (!last || !first) return {};
  // A price that falls with the size, as where another kind of tail begins, counts as level.
  if (last->elements <= first->elements || last->price <= first->price)
    return {Rounded(last->price), 0};
  const double slope = (last->price - first->price) / (last->elements - first->elements);
  // What is rounded is a small part of a large price, at the larger end.
  const int64_t per_element = Rounded(std::ceil(slope));
  return {Rounded(first->price - static_cast<double>(per_element) * first->elements), per_element};
}

}  // namespace tenon::graph
