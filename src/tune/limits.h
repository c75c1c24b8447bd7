// What ends a session of tuning, over networks and over single kernels alike.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace tenon::tune {

struct Limits {
  int64_t trials = 0;          // candidates built, failures included; 0: no such limit
  double seconds = 0;          // of the session; 0: no such limit
  int64_t early_stopping = 0;  // trials in a row without a new leader; 0: no such limit

  /// Why a session ends that has made so many trials, the last `unlucky` of them in vain; "": it
  /// goes on.
  std::string Reached(int64_t made, double passed, int64_t unlucky) const {
    if (trials > 0 && made >= trials) return fmt::format("{} trials were made", made);
    if (seconds > 0 && passed >= seconds) return "its time is over";
    if (early_stopping > 0 && unlucky >= early_stopping)
      return fmt::format("{} trials in a row brought nothing", unlucky);
    return "";
  }
};

}  // namespace tenon::tune
