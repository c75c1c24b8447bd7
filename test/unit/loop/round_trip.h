// The property every text form keeps: what is printed reads back equal and prints the same.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "loop/parse.h"
#include "loop/print.h"

namespace tenon {

inline void ExpectRoundTrip(const Module& module) {
  const std::string text = Print(module);
  auto again = ParseModule(text);
  ASSERT_TRUE(again) << ToString(again.errors()) << text;
  EXPECT_EQ(Print(*again), text);
  ASSERT_EQ(again->funcs.size(), module.funcs.size());
  EXPECT_EQ(again->attrs, module.attrs);
  for (const auto& [name, f] : module.funcs) {
    std::string path;
    EXPECT_TRUE(StructuralEqual(f, again->Find(name), &path)) << path << "\n" << text;
    EXPECT_EQ(StructuralHash(f), StructuralHash(again->Find(name)));
  }
}

/// `text` is a module in exactly the form that is printed.
inline void ExpectPrintsAs(const std::string& text) {
  auto module = ParseModule(text);
  ASSERT_TRUE(module) << ToString(module.errors());
  EXPECT_EQ(Print(*module), text);
  ExpectRoundTrip(*module);
}

}  // namespace tenon
