// What the names in scope stand for.
#pragma once

#include <unordered_map>
#include <utility>

#include "support/check.h"

namespace tenon::interp {

/// From names (nodes of variables or buffers) to what they stand for. Names go and come back all
/// the time; the place of one that went is kept for it, so only the first coming takes memory.
/// References last as long as the map.
template <class Node, class T>
class Names {
 public:
  T& Set(const Node* name, T value) {
    Place& place = places_[name];
    place.known = true;
    return place.value = std::move(value);
  }
  /// Null: the name stands for nothing.
  T* Find(const Node* name) { return const_cast<T*>(std::as_const(*this).Find(name)); }
  const T* Find(const Node* name) const {
    auto it = places_.find(name);
    return it == places_.end() || !it->second.known ? nullptr : &it->second.value;
  }
  T& At(const Node* name) {
    T* value = Find(name);
    TN_CHECK(value != nullptr);
    return *value;
  }
  const T& At(const Node* name) const { return const_cast<Names*>(this)->At(name); }
  void Forget(const Node* name) {
    auto it = places_.find(name);
    if (it != places_.end()) it->second.known = false;
  }

 private:
  struct Place {
    T value{};
    bool known = false;
  };
  std::unordered_map<const Node*, Place> places_;
};

}  // namespace tenon::interp
