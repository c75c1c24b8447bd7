// Expected<T>: a value, or the diagnostics that say why there is none. Everything a user can cause
// returns one.
#pragma once

#include <optional>
#include <utility>
#include <variant>

#include "support/diagnostic.h"

namespace tenon {

struct Unit {};  // for Expected<Unit>, "done"

/// What asking for the value of errors ends with: a bug of ours.
[[noreturn]] void NoValue(const Diagnostics& errors);

template <class T>
class [[nodiscard]] Expected {
 public:
  Expected(T value) : state_(std::move(value)) {}
  Expected(Diagnostic error) : state_(Diagnostics{std::move(error)}) {}
  Expected(Diagnostics errors) : state_(std::move(errors)) {}

  explicit operator bool() const { return std::holds_alternative<T>(state_); }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  T& value() {
    if (!*this) [[unlikely]]
      NoValue(errors());
    return *std::get_if<T>(&state_);
  }
  const T& value() const {
    if (!*this) [[unlikely]]
      NoValue(errors());
    return *std::get_if<T>(&state_);
  }
  Diagnostics& errors() { return std::get<Diagnostics>(state_); }
  const Diagnostics& errors() const { return std::get<Diagnostics>(state_); }

 private:
  std::variant<T, Diagnostics> state_;
};

using Status = Expected<Unit>;
inline Status Ok() { return Status(Unit{}); }

}  // namespace tenon

#define TN_CONCAT_INNER(a, b) a##b
#define TN_CONCAT(a, b) TN_CONCAT_INNER(a, b)
/// TN_ASSIGN_OR_RETURN(auto x, F()): binds the value or returns the errors from the enclosing
/// function.
#define TN_ASSIGN_OR_RETURN(decl, expr) \
  TN_ASSIGN_OR_RETURN_IMPL(TN_CONCAT(tn_tmp_, __LINE__), decl, expr)
#define TN_ASSIGN_OR_RETURN_IMPL(tmp, decl, expr) \
  auto tmp = (expr);                              \
  if (!tmp) return std::move(tmp.errors());       \
  decl = std::move(*tmp)
/// TN_RETURN_IF_ERROR(F()): returns the errors of a Status (or any Expected) from the enclosing
/// function.
#define TN_RETURN_IF_ERROR(expr)                          \
  do {                                                    \
    auto tn_status = (expr);                              \
    if (!tn_status) return std::move(tn_status.errors()); \
  } while (false)
