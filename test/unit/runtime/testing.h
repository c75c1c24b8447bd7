// Shared by the runtime's tests.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tenon/c_api.h"

namespace tenon::runtime {

inline std::string ModulePath(const std::string& name) {
  return std::string(TEST_MODULE_DIR) + "/" + name + ".so";
}

/// "kind: message" of the thread's error.
inline std::string LastErrorText() {
  const char* kind;
  std::string message = tn_last_error(&kind);
  return std::string(kind) + ": " + message;
}

}  // namespace tenon::runtime
