// What NodeOf derives from a node's list of fields: walking, rebuilding, equality and hashing.
// Included where nodes are instantiated (see ir/node.h), so that every other file compiles without
// it.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ir/node.h"

namespace tenon {

namespace node_internal {

template <class T>
inline constexpr bool kIsRef = false;
template <class T>
inline constexpr bool kIsRef<Ref<const T>> = true;
template <class T>
inline constexpr bool kIsRefs = false;
template <class T>
inline constexpr bool kIsRefs<std::vector<Ref<const T>>> = true;
template <class T>
inline constexpr bool kIsRefs<const std::vector<Ref<const T>>> = true;

/// Floats are equal when they are the same value: 0 is not -0, every NaN is NaN.
template <class T>
bool EqualValue(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, double>) {
    return (a != a && b != b) || __builtin_bit_cast(uint64_t, a) == __builtin_bit_cast(uint64_t, b);
  } else {
    return a == b;
  }
}

template <class T>
void HashValue(HashContext& c, const T& v) {
  if constexpr (std::is_same_v<T, std::string>) {
    c.Add(v);
  } else if constexpr (std::is_same_v<T, double>) {
    c.Add(v != v ? ~uint64_t{0} : __builtin_bit_cast(uint64_t, v));
  } else if constexpr (requires { v.ToString(); }) {  // types, attributes, places
    c.Add(v.ToString());
  } else if constexpr (requires { v.FullText(); }) {  // targets
    c.Add(v.FullText());
  } else if constexpr (requires { v.begin(); }) {
    for (const auto& x : v) HashValue(c, x);
  } else {  // numbers and the enums of tables
    c.Add(static_cast<uint64_t>(v));
  }
}

/// Sets field number `index` of `target`, which is a T.
template <class T, class Self>
void AssignField(Self& target, int index, T value) {
  Self::Fields(target, [&](const char*, auto& field, FieldRole) {
    using F = std::remove_cvref_t<decltype(field)>;
    if (index-- != 0) return;
    if constexpr (std::is_same_v<F, T>) field = std::move(value);
  });
}

template <class R>
R CastRef(const NodeRef& n) {
  using P = std::remove_pointer_t<decltype(std::declval<R>().get())>;
  return R(static_cast<P*>(n.get()));
}

}  // namespace node_internal

template <class Self, NodeKind K, class Base>
void NodeOf<Self, K, Base>::VisitChildren(ChildVisitor& v) const {
  Self::Fields(self(), [&](const char*, const auto& field, FieldRole role) {
    using T = std::remove_cvref_t<decltype(field)>;
    if (role == FieldRole::kIgnore) return;
    if constexpr (node_internal::kIsRef<T>) {
      if (field) v.VisitChild(field, role);
    } else if constexpr (node_internal::kIsRefs<T>) {
      for (const auto& x : field) {
        if (x) v.VisitChild(x, role);
      }
    }
  });
}

template <class Self, NodeKind K, class Base>
NodeRef NodeOf<Self, K, Base>::MapChildren(ChildMapper& m) const {
  Ref<Self> copy;
  auto writable = [&]() -> Self& {
    if (!copy) copy = MakeRef<Self>(self());
    return *copy;
  };
  // Walk the original; write changes into the copy at the same field.
  int index = 0;
  Self::Fields(self(), [&](const char*, const auto& field, FieldRole role) {
    using T = std::remove_cvref_t<decltype(field)>;
    int here = index++;
    if (role == FieldRole::kIgnore) return;
    if constexpr (node_internal::kIsRef<T>) {
      if (!field) return;
      NodeRef mapped = m.MapChild(field, role);
      if (mapped.get() != static_cast<const Node*>(field.get()))
        node_internal::AssignField<T>(writable(), here, node_internal::CastRef<T>(mapped));
    } else if constexpr (node_internal::kIsRefs<T>) {
      T result;
      bool changed = false;
      result.reserve(field.size());
      for (const auto& x : field) {
        NodeRef mapped = x ? m.MapChild(x, role) : NodeRef();
        changed |= mapped.get() != static_cast<const Node*>(x.get());
        result.push_back(node_internal::CastRef<typename T::value_type>(mapped));
      }
      if (changed) node_internal::AssignField<T>(writable(), here, std::move(result));
    }
  });
  if (!copy) return NodeRef(this);
  return copy;
}

template <class Self, NodeKind K, class Base>
bool NodeOf<Self, K, Base>::EqualFields(const Node& other, EqualContext& c) const {
  const Self& a = self();
  const Self& b = static_cast<const Self&>(other);
  std::vector<const void*> others;
  Self::Fields(b, [&](const char*, const auto& field, FieldRole) { others.push_back(&field); });
  size_t index = 0;
  bool equal = true;
  Self::Fields(a, [&](const char* name, const auto& field, FieldRole role) {
    using T = std::remove_cvref_t<decltype(field)>;
    const T& theirs = *static_cast<const T*>(others[index++]);
    if (!equal || role == FieldRole::kIgnore) return;
    if constexpr (node_internal::kIsRef<T>) {
      equal = c.Field(name, field, theirs, role);
    } else if constexpr (node_internal::kIsRefs<T>) {
      if (field.size() != theirs.size()) {
        equal = c.Differ(name);
        return;
      }
      for (size_t i = 0; equal && i < field.size(); ++i) {
        equal = c.Field(name, field[i], theirs[i], role);
      }
    } else {
      if (!node_internal::EqualValue(field, theirs)) equal = c.Differ(name);
    }
  });
  return equal;
}

template <class Self, NodeKind K, class Base>
void NodeOf<Self, K, Base>::HashFields(HashContext& c) const {
  Self::Fields(self(), [&](const char*, const auto& field, FieldRole role) {
    using T = std::remove_cvref_t<decltype(field)>;
    if (role == FieldRole::kIgnore) return;
    if constexpr (node_internal::kIsRef<T>) {
      c.AddNode(field, role);
    } else if constexpr (node_internal::kIsRefs<T>) {
      c.Add(field.size());
      for (const auto& x : field) c.AddNode(x, role);
    } else {
      node_internal::HashValue(c, field);
    }
  });
}

}  // namespace tenon
