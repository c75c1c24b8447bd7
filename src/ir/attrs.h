// Attributes: a small ordered map from names to plain values, printed as {name: value, …} in the
// text forms.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tenon {

using AttrValue = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>,
                               std::vector<double>, std::vector<std::string>>;

/// Ordered by name, so that printing and hashing are deterministic. Lookups of a missing name, or
/// of a name that holds another type, give the caller's default.
class Attrs {
 public:
  // Copies and comparison are in attrs.cc: every node that has attributes would have them inline.
  Attrs();
  Attrs(std::initializer_list<std::pair<const std::string, AttrValue>> items);
  Attrs(const Attrs&);
  Attrs(Attrs&&) noexcept;
  Attrs& operator=(const Attrs&);
  Attrs& operator=(Attrs&&) noexcept;
  ~Attrs();

  bool Has(std::string_view name) const { return items_.find(name) != items_.end(); }
  const AttrValue* Find(std::string_view name) const {
    auto it = items_.find(name);
    return it == items_.end() ? nullptr : &it->second;
  }
  template <class T>
  T Get(std::string_view name, T fallback) const {
    const AttrValue* v = Find(name);
    const T* typed = v ? std::get_if<T>(v) : nullptr;
    return typed ? *typed : fallback;
  }
  int64_t GetInt(std::string_view name, int64_t fallback = 0) const {
    return Get<int64_t>(name, fallback);
  }
  double GetFloat(std::string_view name, double fallback = 0) const {
    return Get<double>(name, fallback);
  }
  std::string GetString(std::string_view name, std::string fallback = "") const {
    return Get<std::string>(name, std::move(fallback));
  }
  std::vector<int64_t> GetInts(std::string_view name) const {
    return Get<std::vector<int64_t>>(name, {});
  }

  void Set(std::string name, AttrValue value);
  void Erase(std::string_view name);
  bool empty() const { return items_.empty(); }
  size_t size() const { return items_.size(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

  /// "{axis: 1, mode: "linear", scales: [1.0, 2.0]}"; "" when empty. Floats keep a '.', 'e', "inf"
  /// or "nan".
  std::string ToString() const;

  friend bool operator==(const Attrs& a, const Attrs& b);

 private:
  std::map<std::string, AttrValue, std::less<>> items_;
};

std::string ToString(const AttrValue& value);

}  // namespace tenon
