#include "ops/algorithm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "graph/dims.h"
#include "ir/print.h"
#include "ir/visit.h"
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
  return algorithm.applies(site);
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

// ---- Spaces ----

namespace {

// The value of an expression over knobs. Constraints are made here, by rows: they consist of what
// this knows.
int64_t Evaluate(const Expr& e, const std::vector<Var>& vars, const Point& point) {
  if (auto n = AsInt(e)) return *n;
  for (size_t i = 0; i < point.size(); ++i) {
    if (e.get() == vars[i].get()) return point[i].value;
  }
  if (const auto* u = As<Unary>(e); u && u->op == UnaryOp::kNot) {
    return Evaluate(u->value, vars, point) == 0;
  }
  const auto* b = As<Binary>(e);
  TN_CHECK(b, "a constraint over {}", ToString(e));
  const int64_t x = Evaluate(b->lhs, vars, point);
  if (b->op == BinaryOp::kAnd && x == 0) return 0;
  if (b->op == BinaryOp::kOr && x != 0) return 1;
  const int64_t y = Evaluate(b->rhs, vars, point);
  switch (b->op) {
    case BinaryOp::kAdd: return x + y;
    case BinaryOp::kSub: return x - y;
    case BinaryOp::kMul: return x * y;
    case BinaryOp::kDiv: return x / y;
    case BinaryOp::kMod: return x % y;
    case BinaryOp::kMin: return std::min(x, y);
    case BinaryOp::kMax: return std::max(x, y);
    case BinaryOp::kLt: return x < y;
    case BinaryOp::kLe: return x <= y;
    case BinaryOp::kEq: return x == y;
    case BinaryOp::kNe: return x != y;
    case BinaryOp::kAnd:
    case BinaryOp::kOr: return y != 0;
    default: break;
  }
  TN_CHECK(false, "a constraint over {}", ToString(e));
  return 0;
}

// "[1, 2, 4]", and "1..=64" for all numbers between two.
std::string DomainText(const std::vector<int64_t>& domain) {
  const bool range = domain.back() - domain.front() + 1 == static_cast<int64_t>(domain.size());
  if (range && domain.size() > 4) return fmt::format("{}..={}", domain.front(), domain.back());
  return fmt::format("[{}]", fmt::join(domain, ", "));
}

}  // namespace

Var Space::Add(Knob knob) {
  TN_CHECK(!knob.domain.empty() && std::is_sorted(knob.domain.begin(), knob.domain.end()),
           "the domain of knob '{}'", knob.name);
  vars_.push_back(VarNode::Make(knob.name));
  knobs_.push_back(std::move(knob));
  return vars_.back();
}

void Space::Require(Expr constraint) {
  size_t last = 0;
  for (size_t i = 0; i < vars_.size(); ++i) {
    if (UsesVar(constraint, vars_[i].get())) last = i;
  }
  constraints_.push_back(std::move(constraint));
  last_knob_.push_back(last);
}

bool Space::Holds(size_t constraint, const Point& point) const {
  return Evaluate(constraints_[constraint], vars_, point) != 0;
}

Status Space::Check(const Point& point) const {
  TN_CHECK(point.size() == knobs_.size());
  for (size_t i = 0; i < knobs_.size(); ++i) {
    const Knob& k = knobs_[i];
    TN_CHECK(point[i].name == k.name, "knob '{}' in the place of '{}'", point[i].name, k.name);
    if (std::binary_search(k.domain.begin(), k.domain.end(), point[i].value)) continue;
    return MakeError(fmt::format("the knob '{}' can be one of {}, but not {}", k.name,
                                 DomainText(k.domain), point[i].value));
  }
  for (size_t c = 0; c < constraints_.size(); ++c) {
    if (Holds(c, point)) continue;
    return MakeError(fmt::format("{} breaks the constraint {}", graph::ChoicesText(point),
                                 tenon::ToString(constraints_[c])));
  }
  return Ok();
}

Expected<Point> Space::PointOf(const graph::Choices& choices) const {
  std::vector<std::string> names;
  for (const Knob& k : knobs_) names.push_back(k.name);
  for (const graph::Choice& c : choices) {
    if (std::find(names.begin(), names.end(), c.name) != names.end()) continue;
    return MakeError(fmt::format("there is no knob '{}'{}", c.name,
                                 names.empty() ? "" : "; the knobs are " + Join(names, ", ")));
  }
  Point point;
  for (const std::string& name : names) {
    auto is_it = [&](const graph::Choice& c) { return c.name == name; };
    const auto given = std::find_if(choices.begin(), choices.end(), is_it);
    if (given == choices.end()) return MakeError(fmt::format("the knob '{}' has no value", name));
    point.push_back(*given);
  }
  TN_RETURN_IF_ERROR(Check(point));
  return point;
}

bool Space::SameStructure(const Point& a, const Point& b) const {
  for (size_t i = 0; i < knobs_.size(); ++i) {
    const bool fixed = knobs_[i].structural || knobs_[i].in_layout;
    if (fixed ? a[i] != b[i] : (a[i].value == 1) != (b[i].value == 1)) return false;
  }
  return true;
}

void Space::Extend(Point* point, const std::function<void(const Point&)>& f) const {
  const size_t k = point->size();
  if (k == knobs_.size()) return f(*point);
  point->push_back({knobs_[k].name, 0});
  for (int64_t value : knobs_[k].domain) {
    point->back().value = value;
    bool holds = true;
    for (size_t c = 0; c < constraints_.size() && holds; ++c) {
      holds = last_knob_[c] != k || Holds(c, *point);
    }
    if (holds) Extend(point, f);
  }
  point->pop_back();
}

void Space::ForEach(const std::function<void(const Point&)>& f) const {
  Point point;
  Extend(&point, f);
}

std::string Space::ToString() const {
  std::string out;
  for (const Knob& k : knobs_) {
    out += fmt::format("knob {} in {}{}{}\n", k.name, DomainText(k.domain),
                       k.in_layout ? " layout" : "", k.structural ? " structural" : "");
  }
  for (const Expr& c : constraints_) out += fmt::format("require {}\n", tenon::ToString(c));
  return out;
}

bool Want::IsMetBy(const StorageDesc& stored, const std::vector<Expr>& dims) const {
  const bool rows = any_rows && !stored.order.empty() &&
                    stored.order.back() + 1 == static_cast<int>(stored.order.size());
  if ((stored.order != desc.order && !rows) || stored.blocks != desc.blocks) return false;
  if (HasPadding(desc, dims) && stored.padding != desc.padding) return false;
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
