#include "support/minifloat.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tenon {
namespace {

using Special = Minifloat::Special;

constexpr Minifloat kFormats[] = {
    {8, 3, 4, 3, Special::kInfinity},  {8, 4, 3, 7, Special::kInfinity},
    {8, 4, 3, 11, Special::kZero},     {8, 4, 3, 7, Special::kFinite},
    {8, 5, 2, 15, Special::kInfinity}, {8, 5, 2, 16, Special::kZero},
    {8, 8, 0, 127, Special::kFinite},  {4, 2, 1, 1, Special::kNone},
};

TEST(Minifloat, EveryNumberHasItsCode) {
  for (const Minifloat& f : kFormats) {
    for (int64_t code = 0; code < int64_t{1} << f.bits; ++code) {
      const double number = f.NumberOf(code);
      if (std::isnan(number)) {
        EXPECT_TRUE(std::isnan(f.NumberOf(f.CodeOf(number)))) << code;
        continue;
      }
      EXPECT_EQ(f.CodeOf(number), code);
      EXPECT_EQ(f.Round(number), number);
    }
  }
}

TEST(Minifloat, RoundsToTheNearestAndTiesToEven) {
  for (const Minifloat& f : kFormats) {
    for (int64_t code = 0; code < f.LargestCode(); ++code) {
      const double low = f.NumberOf(code), high = f.NumberOf(code + 1), middle = (low + high) / 2;
      EXPECT_EQ(f.Round(std::nextafter(middle, 0)), low) << code;
      EXPECT_EQ(f.Round(std::nextafter(middle, high)), high) << code;
      EXPECT_EQ(f.Round(middle), f.IsExponent() || code % 2 != 0 ? high : low) << code;
      if (!f.IsExponent()) EXPECT_EQ(f.Round(-middle), -f.Round(middle)) << code;
    }
  }
}

TEST(Minifloat, WhatIsTooLarge) {
  const Minifloat e4m3fn = kFormats[3], e5m2 = kFormats[4], e5m2fnuz = kFormats[5],
                  e2m1 = kFormats[7];
  EXPECT_EQ(e4m3fn.Round(464), 448);  // a tie, and even
  EXPECT_TRUE(std::isnan(e4m3fn.Round(465)));
  EXPECT_EQ(e5m2.Round(-1e9), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(e5m2fnuz.Round(1e9)));
  EXPECT_EQ(e2m1.Round(-1e9), -6);
  EXPECT_FALSE(std::signbit(e5m2fnuz.Round(-0.0)));
}

}  // namespace
}  // namespace tenon
