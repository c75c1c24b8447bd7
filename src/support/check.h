// TN_CHECK: assertions about our own code. They stay on in release builds, throw InternalError (the
// tools turn it into exit status 4) and must never be reachable from user input: what a user can
// cause is an Expected (expected.h).
#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <string>

namespace tenon {

/// A bug of ours. Carries file, line, the failed condition and a message.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              const std::string& message = {});

}  // namespace tenon

/// TN_CHECK(condition) or TN_CHECK(condition, "format {}", args…).
#define TN_CHECK(cond, ...)                                                                     \
  do {                                                                                          \
    if (!(cond)) [[unlikely]]                                                                   \
      ::tenon::CheckFailed(__FILE__, __LINE__, #cond __VA_OPT__(, ::fmt::format(__VA_ARGS__))); \
  } while (false)

/// For the end of a switch over our own enums.
#define TN_UNREACHABLE() ::tenon::CheckFailed(__FILE__, __LINE__, "unreachable")
