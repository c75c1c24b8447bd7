#include "ops/space.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/print.h"
#include "ir/visit.h"
#include "support/check.h"
#include "support/strings.h"

namespace tenon::ops {

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

bool Space::Fits(const Point& point) const {
  for (size_t c = 0; c < constraints_.size(); ++c) {
    if (last_knob_[c] + 1 == point.size() && !Holds(c, point)) return false;
  }
  return true;
}

std::optional<Point> Space::Complete(Point point, size_t from) const {
  for (;;) {
    if (point.size() == knobs_.size()) return point;
    const Knob& k = knobs_[point.size()];
    bool found = false;
    point.push_back({k.name, 0});
    for (size_t i = from; i < k.domain.size() && !found; ++i) {
      point.back().value = k.domain[i];
      found = Fits(point);
    }
    from = 0;
    if (found) continue;
    // No value does: the knob before takes its next one.
    point.pop_back();
    if (point.empty()) return std::nullopt;
    const std::vector<int64_t>& domain = knobs_[point.size() - 1].domain;
    const auto at = std::lower_bound(domain.begin(), domain.end(), point.back().value);
    from = static_cast<size_t>(at - domain.begin()) + 1;
    point.pop_back();
  }
}

std::optional<Point> Space::First() const { return Complete({}, 0); }

std::optional<Point> Space::After(const Point& point) const {
  if (point.empty()) return std::nullopt;
  Point kept = point;
  const std::vector<int64_t>& domain = knobs_[kept.size() - 1].domain;
  const auto at = std::lower_bound(domain.begin(), domain.end(), kept.back().value);
  kept.pop_back();
  return Complete(std::move(kept), static_cast<size_t>(at - domain.begin()) + 1);
}

void Space::ForEach(const std::function<void(const Point&)>& f) const {
  for (std::optional<Point> p = First(); p; p = After(*p)) f(*p);
}

int64_t Space::Count(int64_t most) const {
  int64_t count = 0;
  for (std::optional<Point> p = First(); p && count < most; p = After(*p)) ++count;
  return count;
}

bool Space::Draw(Point* point, int* patience, std::mt19937_64* random) const {
  const size_t k = point->size();
  if (k == knobs_.size()) return true;
  std::vector<int64_t> values = knobs_[k].domain;
  point->push_back({knobs_[k].name, 0});
  while (!values.empty() && (*patience)-- > 0) {
    const size_t i = (*random)() % values.size();
    point->back().value = values[i];
    values[i] = values.back();
    values.pop_back();
    if (Fits(*point) && Draw(point, patience, random)) return true;
  }
  point->pop_back();
  return false;
}

std::optional<Point> Space::Sample(std::mt19937_64* random) const {
  Point point;
  int patience = 10000;
  if (!Draw(&point, &patience, random)) return std::nullopt;
  return point;
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

}  // namespace tenon::ops
