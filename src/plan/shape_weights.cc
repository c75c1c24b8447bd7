#include "plan/shape_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "graph/dims.h"
#include "ir/visit.h"
#include "support/strings.h"

namespace tenon::plan {

namespace {

using graph::Dim;
using graph::Graph;

template <class T>
std::optional<T> WholeNumber(std::string_view text) {
  T value{};
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The variables that sizes of the region's values mention. Values share their sizes' expressions.
std::unordered_set<const VarNode*> Mentioned(const Graph& region) {
  std::unordered_set<const VarNode*> out;
  std::unordered_set<const ExprNode*> seen;
  for (const graph::Value& v : region.values) {
    for (const Expr& e : v.type.tensor().dims) {
      if (IsA<IntConst>(e) || !seen.insert(e.get()).second) continue;
      PreOrder(e, [&](const NodeRef& n) {
        if (const auto* var = As<VarNode>(n)) out.insert(var);
        return true;
      });
    }
  }
  return out;
}

bool IsPrime(int64_t n) {
  for (int64_t d = 2; d * d <= n; ++d) {
    if (n % d == 0) return false;
  }
  return n > 1;
}

double GeometricMiddle(const Dim& d, int64_t most) {
  return std::sqrt(static_cast<double>(d.LeastSome()) * static_cast<double>(most));
}

// What stands for a dim's range: its ends, one between, and a prime. A dim without an end has its
// typical size there.
std::vector<int64_t> SizesFor(const Dim& d) {
  const int64_t least = d.LeastSome(), most = d.max < Dim::kNoMax ? d.max : d.Typical();
  int64_t prime = SizeUpTo(d, (std::llround(GeometricMiddle(d, most)) + most) / 2);
  // Steps may leave none.
  for (int64_t n = prime; n > least; n -= d.step) {
    if (!IsPrime(n)) continue;
    prime = n;
    break;
  }
  return {least, MiddleSize(d, most), prime, most};
}

std::optional<int64_t> SizeOf(const Dim& d, const ShapeWeight& s) {
  const auto at = s.sizes.find(d.var->name);
  if (at == s.sizes.end()) return d.Typical();
  const bool fits =
      at->second >= d.min && at->second <= d.max && SizeUpTo(d, at->second) == at->second;
  return fits ? std::optional(at->second) : std::nullopt;
}

// By the sizes of the region's dims.
std::vector<std::pair<std::vector<int64_t>, double>> Weighted(
    const Graph& region, const std::vector<ShapeWeight>& given) {
  std::vector<std::pair<std::vector<int64_t>, double>> out;
  for (const ShapeWeight& s : given) {
    std::vector<int64_t> sizes;
    for (const Dim& d : region.dims) {
      if (const auto size = SizeOf(d, s)) sizes.push_back(*size);
    }
    if (sizes.size() == region.dims.size()) out.emplace_back(std::move(sizes), s.weight);
  }
  if (!out.empty()) return out;
  for (size_t k = 0; k < 4; ++k) {
    std::vector<int64_t>& sizes = out.emplace_back(std::vector<int64_t>(), 1).first;
    for (const Dim& d : region.dims) sizes.push_back(SizesFor(d)[k]);
  }
  return out;
}

}  // namespace

Expected<ShapeWeight> ShapeWeight::Parse(std::string_view text) {
  const auto fault = [&](const char* what) {
    return MakeError(
        fmt::format("'{}': {}; expected sizes of dims and how often calls have them, as "
                    "batch=4,seq=128:3",
                    text, what));
  };
  ShapeWeight out;
  std::string_view sizes = text;
  if (const size_t colon = text.rfind(':'); colon != std::string_view::npos) {
    const auto weight = WholeNumber<double>(text.substr(colon + 1));
    if (!weight || !std::isfinite(*weight) || *weight <= 0)
      return fault("the weight is no number above 0");
    out.weight = *weight;
    sizes = text.substr(0, colon);
  }
  for (const std::string& part : Split(sizes, ',')) {
    const size_t equal = part.find('=');
    const std::string name(Trim(std::string_view(part).substr(0, equal)));
    if (equal == std::string::npos || name.empty()) return fault("a dim has no size");
    const auto size = WholeNumber<int64_t>(Trim(std::string_view(part).substr(equal + 1)));
    if (!size || *size < 0) return fault("a size is no number");
    if (!out.sizes.emplace(name, *size).second) return fault("a dim has two sizes");
  }
  return out;
}

std::vector<size_t> OpenDims(const Graph& region) {
  std::vector<size_t> open;
  const auto mentioned = Mentioned(region);
  for (size_t i = 0; i < region.dims.size(); ++i) {
    if (mentioned.contains(region.dims[i].var.get()) && region.dims[i].min < region.dims[i].max)
      open.push_back(i);
  }
  return open;
}

Graph WithOwnDims(const Graph& region) {
  Graph out = region;
  const auto mentioned = Mentioned(region);
  std::erase_if(out.dims, [&](const Dim& d) { return !mentioned.contains(d.var.get()); });
  return out;
}

int64_t SizeUpTo(const Dim& d, int64_t size) {
  return d.min + std::max<int64_t>(0, size - d.min) / d.step * d.step;
}

int64_t MiddleSize(const Dim& d, int64_t most) {
  return SizeUpTo(d, std::min<int64_t>(std::llround(GeometricMiddle(d, most)) | 1, most));
}

VarMap SizesOf(const Graph& region, const std::vector<int64_t>& sizes) {
  VarMap out;
  for (size_t i = 0; i < sizes.size(); ++i) out[region.dims[i].var.get()] = IndexConst(sizes[i]);
  return out;
}

Graph AtSizes(const Graph& region, const VarMap& sizes) {
  Graph out = WithOwnDims(region);
  std::unordered_map<const ExprNode*, Expr> known;
  for (graph::Value& v : out.values) {
    for (Expr& e : v.type.tensor().dims) {
      if (IsA<IntConst>(e)) continue;
      const Expr formula = e;  // `region` has it as long as it is a key
      Expr& at_sizes = known[formula.get()];
      if (!at_sizes) at_sizes = graph::SimplifyDim(Substitute(formula, sizes));
      e = at_sizes;
    }
  }
  return out;
}

graph::Choices ChoicesAt(const graph::Plan& plan, const VarMap& sizes) {
  for (const graph::Variant& v : plan.variants) {
    if (AsInt(graph::SimplifyDim(Substitute(v.when, sizes))) == 0) continue;
    graph::Choices out = plan.layout;
    out.insert(out.end(), v.schedule.begin(), v.schedule.end());
    return out;
  }
  return plan.AllChoices();
}

std::vector<SizedRegion> AtWeightedSizes(const Graph& region,
                                         const std::vector<ShapeWeight>& given) {
  const std::vector<size_t> open = OpenDims(region);
  if (open.empty()) return {{AtSizes(region, {}), {}, 1, ""}};
  std::vector<SizedRegion> out;
  double whole = 0;
  for (auto& [sizes, weight] : Weighted(region, given)) {
    whole += weight;
    std::string name;
    for (const size_t d : open)
      name += fmt::format("{}{}={}", name.empty() ? "" : ",", region.dims[d].var->name, sizes[d]);
    const auto same =
        std::find_if(out.begin(), out.end(), [&](const SizedRegion& s) { return s.name == name; });
    if (same != out.end()) {
      same->weight += weight;
    } else {
      out.push_back({AtSizes(region, SizesOf(region, sizes)), sizes, weight, name});
    }
  }
  for (SizedRegion& s : out) s.weight /= whole;
  const auto heaviest = std::max_element(
      out.rbegin(), out.rend(), [](const auto& a, const auto& b) { return a.weight < b.weight; });
  std::rotate(heaviest.base() - 1, heaviest.base(), out.end());
  return out;
}

std::vector<SizedRegion> ThreeSizes(const Graph& region) {
  if (OpenDims(region).empty()) return {{region, {}, 1, ""}};
  std::vector<SizedRegion> out(3);
  for (const Dim& d : region.dims) {
    const int64_t most = d.Typical();
    const int64_t of_dim[] = {d.LeastSome(), MiddleSize(d, most), most};
    for (size_t k = 0; k < 3; ++k) out[k].sizes.push_back(of_dim[k]);
  }
  for (SizedRegion& s : out) s.region = AtSizes(region, SizesOf(region, s.sizes));
  return out;
}

}  // namespace tenon::plan
