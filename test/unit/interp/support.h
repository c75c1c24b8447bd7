// What tests of the interpreter begin with.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "loop/parse.h"

namespace tenon {

inline Module Parse(const std::string& text) {
  auto module = ParseModule(text, "test");
  EXPECT_TRUE(module) << (module ? "" : ToString(module.errors()));
  return module ? *module : Module{};
}

}  // namespace tenon
