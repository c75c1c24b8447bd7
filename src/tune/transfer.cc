#include "tune/transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/print.h"

namespace tenon::tune {

namespace {

// A size appears in several operands: a product of twice as many rows is 1 away. What is farther
// away than a factor of four in one size has other tiles and comes from other memories.
constexpr double kFarthest = 2;

// "@1": a number that is the size of an axis of the first operand and no small one. What is small
// is a number by itself: an axis, a stride, a border.
std::string AttrText(const AttrValue& value, const std::vector<int64_t>& first) {
  constexpr int64_t kSmall = 8;
  if (const auto* n = std::get_if<int64_t>(&value); n && *n > kSmall) {
    const auto at = std::find(first.begin(), first.end(), *n);
    if (at != first.end()) return fmt::format("@{}", at - first.begin());
  }
  return ToString(value);
}

}  // namespace

Family FamilyOf(const graph::Graph& region) {
  Family out;
  const auto add = [&](graph::ValueId v) {
    const graph::TensorType& type = region.type(v);
    out.text += type.dtype.ToString() + "[";
    for (const Expr& d : type.dims) {
      const std::optional<int64_t> n = AsInt(d);
      // 1 is no size: what is broadcast, or a batch that is none, is another computation.
      const bool is_size = n && *n > 1;
      out.text += is_size ? "n," : tenon::ToString(d) + ",";
      if (is_size) out.sizes.push_back(std::log(static_cast<double>(*n)));
    }
    out.text += "]";
  };
  std::vector<int64_t> first;
  if (!region.inputs.empty())
    first = region.type(region.inputs[0]).StaticDims().value_or(std::vector<int64_t>());
  for (const graph::ValueId v : region.inputs) add(v);
  // Places of values, as the region has them.
  for (const graph::Node& n : region.nodes) {
    out.text += graph::Name(n.op);
    for (const auto& [name, value] : n.attrs) out.text += name + AttrText(value, first);
    for (const graph::ValueId v : n.inputs) out.text += fmt::format(" {}", v);
    for (const graph::ValueId v : n.outputs) {
      out.text += fmt::format(" {}:", v);
      add(v);
    }
  }
  for (const graph::ValueId v : region.outputs) out.text += fmt::format(" {}", v);
  return out;
}

void Transfer::Add(const graph::Graph& region, const std::string& kernel,
                   std::map<std::string, double> residuals) {
  Family family = FamilyOf(region);
  known_[family.text][kernel] = {std::move(family.sizes), std::move(residuals)};
}

std::optional<Transfer::Neighbour> Transfer::NearestTo(const graph::Graph& region) const {
  const Family family = FamilyOf(region);
  const auto kernels = known_.find(family.text);
  if (kernels == known_.end()) return std::nullopt;
  std::optional<Neighbour> nearest;
  for (const auto& [kernel, known] : kernels->second) {
    double squares = 0;
    for (size_t i = 0; i < known.sizes.size(); ++i)
      squares += (known.sizes[i] - family.sizes[i]) * (known.sizes[i] - family.sizes[i]);
    const double distance = std::sqrt(squares);
    if (distance > kFarthest || (nearest && distance >= nearest->distance)) continue;
    nearest = Neighbour{kernel, distance, &known.residuals};
  }
  return nearest;
}

double Transfer::Residual(const Neighbour& neighbour, const std::string& trace,
                          const Gaussian& opinion) {
  const double careful = opinion.mean + std::sqrt(opinion.variance);
  const auto there = neighbour.residuals->find(trace);
  if (there == neighbour.residuals->end()) return careful;
  const double weight = std::exp(-neighbour.distance / kFarthest);
  return weight * there->second + (1 - weight) * careful;
}

}  // namespace tenon::tune
