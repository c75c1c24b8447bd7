// The table of rules, in families: each file gives its rows.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>

#include "fuzz/graph/maker.h"

namespace tenon::fuzz {

std::span<const Rule> ElementwiseRules();
std::span<const Rule> ReductionRules();
std::span<const Rule> ContractionRules();
std::span<const Rule> MovementRules();
std::span<const Rule> IndexRules();
std::span<const Rule> NormalizationRules();
std::span<const Rule> QuantizeRules();
std::span<const Rule> ControlRules();
std::span<const Rule> PatternRules();
std::span<const Rule> RecurrentRules();
std::span<const Rule> SignalRules();
std::span<const Rule> VisionRules();
std::span<const Rule> LearnedRules();
std::span<const Rule> ContribRules();
std::span<const Rule> ContribAttentionRules();
std::span<const Rule> ContribQuantizeRules();
std::span<const Rule> ValueRules();
std::span<const Rule> OldRules();

/// A result of type t within -most … most, computed in floats.
inline Value Computed(Elem t, Dims dims, double most, double error) {
  return {"", t, std::move(dims), -most, most, error, false};
}

/// What a few roundings of numbers up to `most` may make.
inline double Rounded(Elem t, double most, Effort effort) {
  return InfoOf(t).unit * effort * std::max(1.0, most);
}

/// A size within limits at both calls.
inline Size Within(Size d, int64_t least, int64_t most) {
  return {std::clamp(d.a, least, most), std::clamp(d.b, least, most)};
}

inline int64_t Rank(const Value& v) { return static_cast<int64_t>(v.rank()); }

/// The operands of a TopK and its results.
struct Largest {
  Value x, values, indices;
  int64_t axis, k;
};
inline Largest DrawLargest(Maker& m, Elem t) {
  const Value x = m.Take(t, {.min_rank = 1, .exact = true, .filled = true});
  const size_t axis = m.Below(x.rank());
  const int64_t k = m.Between(1, x.dims[axis].least());
  Value values = x, indices = x;
  values.dims[axis] = k, indices.dims[axis] = k;
  values.name = indices.name = "";
  indices.elem = kI64, indices.lo = 0, indices.hi = static_cast<double>(x.dims[axis].most());
  return {x, values, indices, static_cast<int64_t>(axis), k};
}

/// A value with an axis of one element, and without that.
struct Squeezed {
  Value x, y;
  int64_t axis;
};
inline Squeezed DrawSqueezed(Maker& m, Elem t) {
  Dims dims = m.AnyDims(1, 3);
  const auto axis = static_cast<int64_t>(m.Below(dims.size()));
  dims[static_cast<size_t>(axis)] = 1;
  const Value x = m.Like(t, dims);
  Value y = x;
  y.dims.erase(y.dims.begin() + axis);
  return {x, y, axis};
}

/// What was found, summed over an axis whose size nobody knows.
inline bool Summed(Maker& m, const std::string& found, int64_t axis, const Value& result) {
  std::vector<std::string> inputs = {found}, attributes = {Int("keepdims", 0)};
  if (m.opset() >= 13)
    inputs.push_back(m.List({axis}).name);
  else
    attributes.push_back(Ints("axes", {axis}));
  return m.Add("ReduceSum", inputs, result, attributes).has_value();
}

/// A rule and one of its element types: what coverage counts.
struct Subject {
  const Rule* rule;
  Elem elem;
};
const std::vector<Subject>& AllSubjects();

/// Operators of the importer's table that no rule makes.
std::vector<std::string> OperatorsWithoutRule();

}  // namespace tenon::fuzz
