#include "support/json.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

TEST(ParseJson, ReadsValues) {
  auto value = ParseJson(R"({"a": [1, 2.5, "x"], "b": null})");
  ASSERT_TRUE(value);
  EXPECT_EQ((*value)["a"][2], "x");
}

TEST(ParseJson, PlacesErrors) {
  auto value = ParseJson("{\n  \"a\": [1,\n  }\n", "f.json");
  ASSERT_FALSE(value);
  EXPECT_EQ(value.errors()[0].ToString(), "f.json:3:3: error: malformed JSON");
  EXPECT_FALSE(ParseJson(""));
  EXPECT_FALSE(ParseJson("[1] 2"));
}

TEST(ParseJson, LimitsDepth) {
  auto nested = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(ParseJson(nested(64)));
  auto value = ParseJson(nested(65));
  ASSERT_FALSE(value);
  EXPECT_EQ(value.errors()[0].kind, ErrorKind::kLimit);
  EXPECT_FALSE(ParseJson(nested(1000000)));
}

}  // namespace
}  // namespace tenon
