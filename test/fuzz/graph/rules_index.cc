// Operators with indices: gathers, scatters, and what finds its size while it runs.
#include "fuzz/graph/rules.h"

namespace tenon::fuzz {

namespace {

// Indices of an axis, from either end.
Value Indices(Maker& m, const Dims& dims, Size axis, Elem elem = kI64) {
  const auto d = static_cast<double>(axis.least());
  return m.Data(elem, dims, m.Chance(2) ? -d : 0, d - 1);
}

bool Gather(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.min_rank = 1, .filled = true});
  const size_t axis = m.Below(x.rank());
  const Value at = Indices(m, m.AnyDims(0, 2, 40), x.dims[axis], m.Chance(2) ? kI32 : kI64);
  Value y = x;
  y.dims.erase(y.dims.begin() + static_cast<long>(axis));
  y.dims.insert(y.dims.begin() + static_cast<long>(axis), at.dims.begin(), at.dims.end());
  return m.Add(rule.op, {x.name, at.name}, y, {Int("axis", static_cast<int64_t>(axis))})
      .has_value();
}

bool GatherElements(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.min_rank = 1, .filled = true});
  const size_t axis = m.Below(x.rank());
  Dims dims = x.dims;
  dims[axis] = m.AnyOpenSize();
  const Value at = Indices(m, dims, x.dims[axis]);
  Value y = x;
  y.dims = dims;
  return m.Add(rule.op, {x.name, at.name}, y, {Int("axis", static_cast<int64_t>(axis))})
      .has_value();
}

bool GatherNd(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.min_rank = 1, .filled = true});
  const size_t q = 1 + m.Below(x.rank());
  int64_t least = x.dims[0].least();
  for (size_t i = 0; i < q; ++i) least = std::min(least, x.dims[i].least());
  const Size n = m.AnyOpenSize();
  const Value at = Indices(m, {n, static_cast<int64_t>(q)}, least);
  Value y = x;
  y.dims = {n};
  y.dims.insert(y.dims.end(), x.dims.begin() + static_cast<long>(q), x.dims.end());
  return m.Add(rule.op, {x.name, at.name}, y).has_value();
}

// A reduction of a scatter; of floats sums of exact numbers only, as their order is free.
std::vector<std::string> Reduction(Maker& m, Elem t, Value* y, const Value& updates, Size count) {
  if (t == kBool || m.Chance(2) || m.opset() < 18) return {};
  const std::string kind = m.Of<std::string>({"add", "max", "min"});
  if (kind == "add") {
    const auto n = static_cast<double>(std::max<int64_t>(1, count.most()));
    y->lo += std::min(0.0, updates.lo) * n, y->hi += std::max(0.0, updates.hi) * n;
    y->error += updates.error * n;
    if (IsFloat(t) && !y->whole) y->error += InfoOf(t).unit * n * std::max(1.0, y->bound());
  }
  return {Str("reduction", kind)};
}

// Each place once where the last one wins: which one is last is nobody's promise.
bool ScatterElements(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.min_rank = 1, .max_rank = 3, .filled = true});
  const size_t axis = m.Below(x.rank());
  Dims dims = x.dims;
  dims[axis] = 1;
  const Value at = Indices(m, dims, x.dims[axis]);
  const Value updates = m.Like(t, dims);
  Value y = x;
  y.lo = std::min(x.lo, updates.lo), y.hi = std::max(x.hi, updates.hi);
  y.error = std::max(x.error, updates.error), y.whole = x.whole && updates.whole;
  std::vector<std::string> attributes = {Int("axis", static_cast<int64_t>(axis))};
  if (rule.op == std::string_view("ScatterElements")) {
    for (std::string& a : Reduction(m, t, &y, updates, 1)) attributes.push_back(std::move(a));
  }
  return m.Add(rule.op, {x.name, at.name, updates.name}, y, attributes).has_value();
}

bool ScatterNd(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.min_rank = 1, .max_rank = 3, .filled = true});
  Value y = x;
  Dims rest(x.dims.begin() + 1, x.dims.end());
  // One row without reduction; several with one.
  const bool several = m.opset() >= 18 && t != kBool && m.Chance(2);
  const Size n = several ? m.Between(1, 5) : 1;
  Dims dims = {n};
  dims.insert(dims.end(), rest.begin(), rest.end());
  const Value updates = m.Like(t, dims), at = Indices(m, {n, 1}, x.dims[0]);
  y.lo = std::min(x.lo, updates.lo), y.hi = std::max(x.hi, updates.hi);
  y.error = std::max(x.error, updates.error), y.whole = x.whole && updates.whole;
  std::vector<std::string> attributes;
  while (several && attributes.empty()) attributes = Reduction(m, t, &y, updates, n);
  return m.Add(rule.op, {x.name, at.name, updates.name}, y, attributes).has_value();
}

bool OneHot(Maker& m, const Rule& rule, Elem t) {
  const Dims dims = m.AnyDims(0, 2, 60);
  const int64_t depth = m.Between(1, 9);
  const Elem type = m.Of<Elem>({kI32, kI64});
  const Value at = m.Like(
      type, dims,
      {.lo = static_cast<double>(-depth), .hi = static_cast<double>(depth - 1), .exact = true});
  const Value values = m.Data(t, {2}, 0, t == kBool ? 1 : 4);
  const int64_t axis = m.Between(0, static_cast<int64_t>(dims.size()));
  Value y{"", t, dims, 0, values.hi};
  y.dims.insert(y.dims.begin() + axis, depth);
  return m.Add(rule.op, {at.name, m.List({depth}).name, values.name}, y, {Int("axis", axis)})
      .has_value();
}

// Results whose size the elements decide become a sum over it, of a known size: rules need not
// know how many there are.
bool NonZero(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.min_rank = 1, .max_rank = 3, .exact = true});
  const std::string found = m.NewName();
  m.Plain(rule.op, {x.name}, found);
  const auto n = static_cast<double>(Count(x.dims).most());
  Value y{"", kI64, {static_cast<int64_t>(x.rank())}, 0, n * n + 1};
  return Summed(m, found, 1, y);
}

bool Compress(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.min_rank = 1, .max_rank = 3});
  const size_t axis = m.Below(x.rank());
  const Value which = m.Like(kBool, {x.dims[axis]});
  const std::string found = m.NewName();
  m.Plain(rule.op, {x.name, which.name}, found, {Int("axis", static_cast<int64_t>(axis))});
  Value y{"", kI64, {static_cast<int64_t>(x.rank())}, 0, 1e4};
  return m.Add("Shape", {found}, y).has_value();
}

// Of the results the counts, whose sum is known, the places of all, or the first element.
bool Unique(Maker& m, const Rule& rule, Elem t) {
  const bool contrib = *rule.domain != 0;  // lists, in their order, without the first places
  const Value x = m.Take(t, {.min_rank = 1,
                             .max_rank = contrib ? size_t{1} : 2,
                             .exact = true,
                             .filled = true,
                             .most = 100});
  std::vector<std::string> attributes;
  if (!contrib && !m.Chance(3)) attributes.push_back(Int("sorted", m.Chance(2)));
  const bool along = !contrib && m.Chance(3);
  const size_t axis = m.Below(x.rank());
  if (along) attributes.push_back(Int("axis", static_cast<int64_t>(axis)));
  const Size n = along ? x.dims[axis] : Count(x.dims);
  const auto most = static_cast<double>(n.most());
  const std::string values = m.NewName(), inverse = m.NewName(), counts = m.NewName();
  m.PlainAll(rule.op, {x.name},
             contrib ? std::vector{values, inverse, counts}
                     : std::vector{values, std::string(), inverse, counts},
             attributes, rule.domain);
  if (m.Chance(3)) return Summed(m, counts, 0, {"", kI64, {}, 1, most});
  if (along || m.Chance(2)) {
    const Value places{"", kI64, {n}, 0, most};
    return m.Add("Identity", {inverse}, places).has_value();
  }
  Value y = x;
  y.dims = {1};
  return m.Add("Gather", {values, m.List({0}).name}, y).has_value();
}

constexpr Rule kRules[] = {
    {"Gather", 13, kAll, Gather},
    {"GatherElements", 13, kAll, GatherElements},
    {"GatherND", 13, kAll, GatherNd},
    {"ScatterElements", 18, kAll, ScatterElements},
    {"ScatterND", 18, kAll, ScatterNd},
    {"OneHot", 11, kOldAll, OneHot},
    {"OneHot", 28, Only(kBF16), OneHot},
    {"NonZero", 13, kAll, NonZero},
    {"Compress", 11, kOldAll, Compress},
    {"Compress", 28, Only(kBF16), Compress},
    {"Unique", 11, kOldAll, Unique},
    {"Unique", 28, Only(kBF16), Unique},
    {"Unique", 18, kOldAll, Unique, "com.microsoft"},
    // As sets before defined them, of the types that they knew.
    {"Gather", 1, kOldAll, Gather, "", 13},
    {"GatherElements", 11, kOldAll, GatherElements, "", 13},
    {"GatherND", 11, kOldAll, GatherNd, "", 13},
    {"Scatter", 9, kOldAll, ScatterElements, "", 11},
    {"ScatterElements", 11, kOldAll, ScatterElements, "", 13},
    {"ScatterND", 11, kOldAll, ScatterNd, "", 13},
    {"OneHot", 9, kOldAll, OneHot, "", 11},
    {"NonZero", 9, kOldAll, NonZero, "", 13},
};

}  // namespace

std::span<const Rule> IndexRules() { return kRules; }

}  // namespace tenon::fuzz
