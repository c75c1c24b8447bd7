#include "ops/algorithm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "graph/dims.h"
#include "ir/print.h"
#include "ir/visit.h"
#include "ops/fusing.h"
#include "support/check.h"
#include "support/strings.h"

namespace tenon::ops {

#define TN_ALGORITHM(row) extern const Algorithm row;
#include "ops/algorithms.def"
#undef TN_ALGORITHM

std::span<const Algorithm* const> Algorithms() {
  static const Algorithm* const kAll[] = {
#define TN_ALGORITHM(row) &row,
#include "ops/algorithms.def"
#undef TN_ALGORITHM
  };
  return kAll;
}

const Algorithm* FindAlgorithm(std::string_view name) {
  for (const Algorithm* a : Algorithms()) {
    if (name == a->name) return a;
  }
  return nullptr;
}

bool Applies(const Algorithm& algorithm, const Site& site) {
  if (!algorithm.ops.empty()) {
    if (site.anchor == graph::kNoNode) return false;
    const auto& ops = algorithm.ops;
    if (std::find(ops.begin(), ops.end(), site.node().op) == ops.end()) return false;
  }
  return (algorithm.takes_sums || !HasSums(site)) && algorithm.applies(site);
}

bool HasSums(const Site& site) {
  const auto& nodes = site.region.nodes;
  if (site.anchor == graph::kNoNode) return false;
  return std::any_of(nodes.begin(), nodes.end(), [&](const graph::Node& n) {
    return &n != &site.node() && !HasElementDefinition(n.op);
  });
}

std::vector<int64_t> Site::Sizes(const graph::TensorType& type) const {
  std::vector<int64_t> out;
  for (const Expr& d : type.dims) out.push_back(TypicalSize(region, d));
  return out;
}

std::vector<int64_t> Site::LeastSizes(const graph::TensorType& type) const {
  std::vector<int64_t> out;
  for (const Expr& d : type.dims) out.push_back(LeastSize(region, d));
  return out;
}

bool AreNumbers(const graph::TensorType& type, size_t first_axis) {
  for (size_t i = first_axis; i < type.dims.size(); ++i) {
    if (!AsInt(type.dims[i])) return false;
  }
  return true;
}

bool Want::IsMetBy(const StorageDesc& stored, const std::vector<Expr>& dims) const {
  const bool rows = any_rows && !stored.order.empty() &&
                    stored.order.back() + 1 == static_cast<int>(stored.order.size());
  if ((stored.order != desc.order && !rows) || stored.blocks != desc.blocks) return false;
  if (!any_padding && HasPadding(desc, dims) && stored.padding != desc.padding) return false;
  for (size_t i = 0; i < dims.size(); ++i) {
    auto cells = [&](const StorageDesc& d) { return d.size.empty() ? dims[i] : d.size[i]; };
    auto begin = [&](const StorageDesc& d) { return d.begin.empty() ? int64_t{0} : d.begin[i]; };
    if (begin(stored) < begin(desc)) return false;
    const Expr more = graph::DimSub(cells(stored), cells(desc));
    if (graph::DimRange(more).min < begin(stored) - begin(desc)) return false;
  }
  return true;
}

void WantPlainResults(const Site& site, std::vector<Want>* wants) {
  for (graph::ValueId v : site.region.outputs) wants->push_back({v, {}, true});
}

// The value that conversions make `v` of.
static graph::ValueId BehindCasts(const graph::Graph& region, graph::ValueId v) {
  while (region.value(v).producer != graph::kNoNode) {
    const graph::Node& n = region.node(region.value(v).producer);
    if (n.op != graph::OpKind::kCast) break;
    v = n.inputs[0];
  }
  return v;
}

std::optional<std::vector<Want>> WantsOf(const Algorithm& algorithm, const Site& site,
                                         const Point& point) {
  const graph::Graph& region = site.region;
  const auto is_stored = [&](graph::ValueId v) {
    const auto in = [&](const auto& list) {
      return std::find(list.begin(), list.end(), v) != list.end();
    };
    return in(region.inputs) || in(region.outputs);
  };
  std::vector<Want> wants = algorithm.wants(site, point);
  for (Want& want : wants) {
    if (want.value == graph::kNoValue || is_stored(want.value)) continue;
    const graph::ValueId behind = BehindCasts(region, want.value);
    const bool has_border = !want.desc.size.empty();
    if (is_stored(behind) && (!has_border || want.desc.padding == 0)) {
      want.value = behind;
    } else if (has_border && !region.value(want.value).IsConstant()) {
      return std::nullopt;
    }
  }
  return wants;
}

// ---- Prices ----

double PriceOf(const Algorithm& algorithm, const Site& site, const Point& point) {
  return EstimateSeconds(algorithm.work(site, point), site.machine);
}

std::optional<Priced> CheapestPoint(const Algorithm& algorithm, const Site& site,
                                    const std::function<bool(const Point&)>& allowed) {
  std::optional<Priced> best;
  algorithm.space(site).ForEach([&](const Point& point) {
    if (allowed && !allowed(point)) return;
    const double seconds = PriceOf(algorithm, site, point);
    // Sums in another order are no better.
    if (!best || seconds < best->seconds * (1 - 1e-9)) best = {point, seconds};
  });
  return best;
}

graph::Plan MakePlan(const Algorithm& algorithm, const Space& space, const Point& point,
                     double seconds) {
  graph::Plan plan;
  plan.algorithm = algorithm.name;
  plan.seconds = std::strtod(fmt::format("{:.3g}", seconds).c_str(), nullptr);
  plan.variants.push_back({IntConst::Make(DType::Bool(), 1), {}});
  for (size_t i = 0; i < point.size(); ++i) {
    (space.knobs()[i].in_layout ? plan.layout : plan.variants[0].schedule).push_back(point[i]);
  }
  return plan;
}

}  // namespace tenon::ops
