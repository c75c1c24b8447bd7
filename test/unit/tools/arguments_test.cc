#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "call_arguments.h"
#include "compare_tensors.h"
#include "guard.h"

namespace tenon::tools {
namespace {

Tensor Floats(const std::vector<double>& values) {
  Tensor t = *Tensor::Make({TN_DL_FLOAT, 32, 1}, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) t.Set(static_cast<int64_t>(i), values[i]);
  return t;
}

TEST(Guard, Quantities) {
  EXPECT_EQ(*ParseBytes("1000"), 1000);
  EXPECT_EQ(*ParseBytes("512M"), int64_t{512} << 20);
  EXPECT_EQ(*ParseBytes("1.5g"), int64_t{3} << 29);
  EXPECT_EQ(*ParseSeconds("90"), 90);
  EXPECT_EQ(*ParseSeconds("5m"), 300);
  EXPECT_EQ(*ParseSeconds("0.5h"), 1800);
  for (const char* bad : {"", "M", "-1", "0", "1X", "1MB", "nan", "inf", "1e400", " 1"}) {
    EXPECT_FALSE(ParseBytes(bad)) << bad;
    EXPECT_FALSE(ParseSeconds(bad)) << bad;
  }
  EXPECT_GT(*ParseBytes("1e30"), 0);
}

TEST(ArrayPaths, NamesAndFiles) {
  EXPECT_TRUE(ParseArrayPath("-i", "a=b.npz")->archive);
  EXPECT_EQ(ParseArrayPath("-i", "x=dir/a=b.npy")->name, "x");
  EXPECT_EQ(ParseArrayPath("-i", "x=dir/a=b.npy")->path, "dir/a=b.npy");
  EXPECT_EQ(ParseArrayPath("-i", "y.npy")->name, "");
  EXPECT_FALSE(ParseArrayPath("-i", "y.txt"));
  EXPECT_FALSE(ParseArrayPath("-i", ""));
}

TEST(Difference, Tolerance) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const Tolerance t{0.1, 0.01};
  EXPECT_EQ(Difference(Floats({1, inf, nan, 0}), Floats({1.05, inf, nan, 0.005}), t), "");
  EXPECT_NE(Difference(Floats({1}), Floats({1.2}), t), "");
  EXPECT_NE(Difference(Floats({inf}), Floats({-inf}), t), "");
  EXPECT_NE(Difference(Floats({inf}), Floats({1e30}), t), "");
  EXPECT_NE(Difference(Floats({1}), Floats({inf}), t), "");
  EXPECT_NE(Difference(Floats({nan}), Floats({1}), t), "");
  EXPECT_EQ(Difference(Floats({}), Floats({}), t), "");
  EXPECT_NE(Difference(Floats({1}), Floats({1, 1}), t), "");
  // The worst of several is shown, a NaN before any number.
  EXPECT_NE(Difference(Floats({9, 2, nan}), Floats({1, 1, 1}), t).find("worst is [2]"),
            std::string::npos);
  EXPECT_NE(Difference(Floats({2, 9, 1}), Floats({1, 1, 1}), t).find("worst is [1]"),
            std::string::npos);
}

TEST(IndexText, Shapes) {
  const int64_t shape[] = {2, 3, 4};
  EXPECT_EQ(IndexText(23, shape), "[1, 2, 3]");
  EXPECT_EQ(IndexText(0, {}), "[]");
}

}  // namespace
}  // namespace tenon::tools
