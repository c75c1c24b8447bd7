// The rows of kinds.def hang together, and targets answer by them.
#include "target/kinds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "support/strings.h"
#include "target/tables.h"
#include "tenon/devices.h"

namespace tenon {
namespace {

Target Must(std::string_view text) { return Target::Parse(text).value(); }

TEST(Kinds, RowsNameWhatIsThere) {
  std::set<std::string_view> names;
  for (const TargetKind& kind : Kinds()) {
    SCOPED_TRACE(kind.name);
    EXPECT_TRUE(names.insert(kind.name).second);
    EXPECT_NE(FindDevice(kind.device), nullptr);
    const bool on_device = kind.family == Family::kDevice;
    EXPECT_EQ(FindGpu(kind, "") != nullptr, on_device);
    const std::vector<std::string> options = Split(kind.options, ' ');
    EXPECT_EQ(std::count(options.begin(), options.end(), "host"), on_device);
    EXPECT_TRUE(kind.arch_option.empty() ||
                std::count(options.begin(), options.end(), kind.arch_option));
    EXPECT_EQ(Must(kind.name).kind().name, kind.name);
  }
  for (const GpuRow& row : GpuRows()) EXPECT_NE(FindKind(row.kind), nullptr) << row.kind;
}

TEST(Kinds, DevicesHaveNumbersOfTheirOwn) {
  std::set<int64_t> types;
  std::set<std::string_view> names;
#define TN_DEVICE_ROW(id, name, type, handles) \
  EXPECT_TRUE(types.insert(type).second&& names.insert(name).second) << name;
  TN_DEVICES(TN_DEVICE_ROW)
#undef TN_DEVICE_ROW
  EXPECT_EQ(Must("cuda -arch=null").device().type, TN_DL_NULL);
  EXPECT_EQ(Must("cuda").device().type, TN_DL_CUDA);
  EXPECT_TRUE(Must("opencl").device().handles);
  EXPECT_EQ(Must("llvm").device().type, TN_DL_CPU);
  EXPECT_EQ(FindDevice(int64_t{99}), nullptr);
}

TEST(Kinds, AbilitiesDependOnTheArchitecture) {
  EXPECT_TRUE(Must("cuda -arch=sm_90").Can(Ability::kClusters));
  EXPECT_TRUE(Must("cuda -arch=null").Can(Ability::kClusters));
  EXPECT_FALSE(Must("cuda -arch=sm_89").Can(Ability::kClusters));
  EXPECT_FALSE(Must("opencl").Can(Ability::kBarriers));
  EXPECT_EQ(FeatureFor(Ability::kDependentLaunches), "sm_90");
}

// A unit with a letter at its end is that generation's alone.
TEST(Kinds, TargetsOfferUnits) {
  EXPECT_TRUE(Must("cuda -arch=sm_90a").Offers("sm_90a"));
  EXPECT_FALSE(Must("cuda -arch=sm_100").Offers("sm_90a"));
  EXPECT_TRUE(Must("cuda -arch=sm_100").Offers("sm_80"));
  EXPECT_TRUE(Must("llvm -mcpu=x86-64-v3").Offers("avx2"));
  EXPECT_FALSE(Must("llvm -mcpu=x86-64-v3").Offers("avx512f"));
  EXPECT_TRUE(Must("c").Offers("avx512f"));
}

TEST(Kinds, LibrariesOfSomeArchitecturesAreContained) {
  EXPECT_TRUE(Must("llvm -mtriple=wasm32-unknown-unknown").IsContained());
  EXPECT_TRUE(IsContained("wasm32-unknown-unknown"));
  EXPECT_FALSE(Must("llvm -mcpu=x86-64").IsContained());
  EXPECT_FALSE(Must("c").IsContained());
  EXPECT_FALSE(IsContained("sparc-sun-solaris"));
}

}  // namespace
}  // namespace tenon
