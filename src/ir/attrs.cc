#include "ir/attrs.h"

#include <fmt/format.h>

#include <algorithm>

#include "support/strings.h"

namespace tenon {

static std::string FloatText(double v) {
  std::string s = fmt::format("{}", v);
  if (s.find_first_of(".enai") == std::string::npos) s += ".0";
  return s;
}

template <class T, class F>
static std::string ListText(const std::vector<T>& list, F&& item) {
  std::string out = "[";
  for (size_t i = 0; i < list.size(); ++i) out += (i ? ", " : "") + item(list[i]);
  return out + "]";
}

std::string ToString(const AttrValue& value) {
  struct Printer {
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(int64_t v) const { return std::to_string(v); }
    std::string operator()(double v) const { return FloatText(v); }
    std::string operator()(const std::string& v) const { return QuoteJson(v); }
    std::string operator()(const std::vector<int64_t>& v) const {
      return ListText(v, [](int64_t x) { return std::to_string(x); });
    }
    std::string operator()(const std::vector<double>& v) const { return ListText(v, FloatText); }
    std::string operator()(const std::vector<std::string>& v) const {
      return ListText(v, [](const std::string& s) { return QuoteJson(s); });
    }
  };
  return std::visit(Printer{}, value);
}

Attrs::Attrs() = default;
Attrs::Attrs(std::initializer_list<std::pair<const std::string, AttrValue>> items)
    : items_(items) {}
Attrs::Attrs(const Attrs&) = default;
Attrs::Attrs(Attrs&&) noexcept = default;
Attrs& Attrs::operator=(const Attrs&) = default;
Attrs& Attrs::operator=(Attrs&&) noexcept = default;
Attrs::~Attrs() = default;

// A value is equal to itself, NaN included.
static bool IsSame(double a, double b) { return a == b || (a != a && b != b); }
static bool IsSame(const AttrValue& a, const AttrValue& b) {
  const auto *x = std::get_if<double>(&a), *y = std::get_if<double>(&b);
  if (x && y) return IsSame(*x, *y);
  const auto* list = std::get_if<std::vector<double>>(&a);
  const auto* other = std::get_if<std::vector<double>>(&b);
  if (!list || !other) return a == b;
  return std::equal(list->begin(), list->end(), other->begin(), other->end(),
                    [](double u, double v) { return IsSame(u, v); });
}

bool operator==(const Attrs& a, const Attrs& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& u, const auto& v) {
    return u.first == v.first && IsSame(u.second, v.second);
  });
}

void Attrs::Set(std::string name, AttrValue value) {
  items_.insert_or_assign(std::move(name), std::move(value));
}

void Attrs::Erase(std::string_view name) {
  if (auto it = items_.find(name); it != items_.end()) items_.erase(it);
}

std::string Attrs::ToString() const {
  if (items_.empty()) return "";
  std::string out = "{";
  for (auto it = items_.begin(); it != items_.end(); ++it) {
    out += (it == items_.begin() ? "" : ", ") + it->first + ": " + tenon::ToString(it->second);
  }
  return out + "}";
}

}  // namespace tenon
