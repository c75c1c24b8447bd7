// What a host function launches.
#pragma once

#include <string>
#include <vector>

#include "ir/visit.h"
#include "loop/func.h"
#include "loop/stmt.h"

namespace tenon::testing {

/// The kernels that a host function launches, in order.
inline std::vector<std::string> Launches(const Module& module, const std::string& function) {
  std::vector<std::string> out;
  PreOrder(module.Find(function)->body, [&](const NodeRef& n) {
    if (const auto* launch = As<Launch>(n)) out.push_back(launch->kernel);
    return true;
  });
  return out;
}

}  // namespace tenon::testing
