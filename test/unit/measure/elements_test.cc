// Operands in layouts: what is stored comes back, padding is where no element is, guards are kept;
// and answers are the same or not as their type has it.
#include "measure/elements.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>
#include <utility>

#include "measure/guarded_memory.h"

namespace tenon::measure {
namespace {

Parameter Plain(const std::string& dtype, std::vector<int64_t> dims) {
  Parameter p;
  p.dtype = dtype;
  p.dims = p.shape = std::move(dims);
  int64_t stride = 1;
  for (size_t k = p.dims.size(); k-- > 0; stride *= p.dims[k])
    p.terms.insert(p.terms.begin(), {static_cast<int64_t>(k), 1, 0, stride});
  return p;
}

// [2, 5] in blocks of 4 columns with a border of one row before: 3 rows × 2 blocks × 4.
Parameter Blocked() {
  Parameter p;
  p.dtype = "float32";
  p.dims = {2, 5};
  p.shape = {3, 2, 4};
  p.terms = {{0, 1, 0, 8}, {1, 4, 0, 4}, {1, 1, 4, 1}};
  p.begin = {1, 0};
  p.padding = 7;
  return p;
}

TEST(Elements, ComeBackFromALayout) {
  const Parameter p = Blocked();
  ASSERT_EQ(StorageBytes(p).value(), 24 * 4);
  const std::vector<std::byte> elements = MakeElements(p, 1);
  std::vector<float> storage(24, -1);
  Store(p, elements, reinterpret_cast<std::byte*>(storage.data()));
  EXPECT_EQ(Load(p, reinterpret_cast<std::byte*>(storage.data())), elements);
  float first[10];
  std::memcpy(first, elements.data(), sizeof first);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(storage[static_cast<size_t>(i)], 7) << i;  // the border
  EXPECT_EQ(storage[8], first[0]);
  EXPECT_EQ(storage[12], first[4]);  // the second block
  EXPECT_EQ(storage[13], 7);         // and what fills it
  EXPECT_EQ(storage[16], first[5]);
}

// What lies in row-major order is copied whole; a part of a larger storage is not that.
TEST(Elements, OfRowMajorOrderAreTheStorage) {
  Parameter p;
  p.dtype = "float32";
  p.dims = p.shape = {2, 3};
  p.terms = {{0, 1, 0, 3}, {1, 1, 0, 1}};
  const std::vector<std::byte> elements = MakeElements(p, 1);
  std::vector<std::byte> storage(elements.size());
  Store(p, elements, storage.data());
  EXPECT_EQ(storage, elements);
  EXPECT_EQ(Load(p, storage.data()), elements);
  Parameter turned = p;  // columns first
  turned.shape = {3, 2};
  turned.terms = {{1, 1, 0, 2}, {0, 1, 0, 1}};
  Parameter wide = p;  // a column to spare
  wide.shape = {2, 4};
  wide.terms[0].stride = 4;
  Parameter apart = wide;  // which comes first
  apart.begin = {0, 1};
  for (const Parameter& other : {turned, wide, apart}) {
    std::vector<std::byte> there(static_cast<size_t>(StorageBytes(other).value()));
    Store(other, elements, there.data());
    EXPECT_FALSE(std::equal(elements.begin(), elements.end(), there.begin()));
    EXPECT_EQ(Load(other, there.data()), elements);
  }
}

TEST(Elements, LayoutsThatLeaveTheStorageAreErrors) {
  Parameter p = Blocked();
  p.shape = {2, 2, 4};
  EXPECT_FALSE(StorageBytes(p));
  p = Plain("float32", {1 << 20, 1 << 20, 1 << 20});
  EXPECT_FALSE(StorageBytes(p));
  p = Plain("float8_e4m3fn", {4});
  EXPECT_FALSE(StorageBytes(p));
}

TEST(Elements, AreTheSameForTheSameSeed) {
  const Parameter p = Plain("float32", {100});
  EXPECT_EQ(MakeElements(p, 3), MakeElements(p, 3));
  EXPECT_NE(MakeElements(p, 3), MakeElements(p, 4));
}

TEST(Elements, OfIntegersHaveTheirRangeOrTheirLimit) {
  const std::vector<std::byte> bytes = MakeElements(Plain("int8", {5000}), 1);
  EXPECT_EQ(std::set<std::byte>(bytes.begin(), bytes.end()).size(), 256U);
  Parameter places = Plain("int64", {100});
  places.limit = 3;
  const std::vector<std::byte> numbers = MakeElements(places, 1);
  for (size_t i = 0; i < 100; ++i) {
    int64_t x = 0;
    std::memcpy(&x, &numbers[8 * i], 8);
    EXPECT_GE(x, 0);
    EXPECT_LT(x, 3);
  }
}

TEST(Elements, NormalNumbersOfEveryFloat) {
  for (const char* dtype : {"float64", "float32", "float16", "bfloat16"}) {
    const Parameter p = Plain(dtype, {4000});
    const std::vector<std::byte> elements = MakeElements(p, 1);
    // A result is the same as itself, and not the same as its neighbour's.
    EXPECT_EQ(FirstDifference(p, elements, elements, ScaleOf(p, elements)), "") << dtype;
    std::vector<std::byte> turned(elements.begin() + 8, elements.end());
    turned.insert(turned.end(), elements.begin(), elements.begin() + 8);
    EXPECT_NE(FirstDifference(p, turned, elements, ScaleOf(p, elements)), "") << dtype;
  }
}

std::vector<std::byte> Floats(std::vector<float> x) {
  std::vector<std::byte> out(x.size() * 4);
  std::memcpy(out.data(), x.data(), out.size());
  return out;
}

TEST(Elements, AreComparedAsTheirTypeHasIt) {
  const Parameter p = Plain("float32", {3});
  EXPECT_EQ(FirstDifference(p, Floats({1, 100.001F, NAN}), Floats({1, 100, NAN}),
                            ScaleOf(p, Floats({1, 100, NAN}))),
            "");
  EXPECT_NE(
      FirstDifference(p, Floats({1, 101, 0}), Floats({1, 100, 0}), ScaleOf(p, Floats({1, 100, 0}))),
      "");
  EXPECT_NE(
      FirstDifference(p, Floats({NAN, 1, 1}), Floats({1, 1, 1}), ScaleOf(p, Floats({1, 1, 1}))),
      "");
  const Parameter ints = Plain("int32", {1});
  const int32_t one = 1, two = 2;
  std::vector<std::byte> a(4), b(4);
  std::memcpy(a.data(), &one, 4);
  std::memcpy(b.data(), &two, 4);
  EXPECT_NE(FirstDifference(ints, a, b, ScaleOf(ints, b)), "");
}

TEST(GuardedMemory, KnowsWhatWasWrittenBeside) {
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{63}, size_t{4096}, size_t{5000}}) {
    const GuardedMemory memory = std::move(GuardedMemory::Make(bytes).value());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % 64, 0U);
    std::memset(memory.data(), 0, bytes);
    EXPECT_TRUE(memory.IsWhole()) << bytes;
    if (bytes % 64 == 0) continue;
    memory.data()[bytes] = std::byte{0};
    EXPECT_FALSE(memory.IsWhole()) << bytes;
  }
}

TEST(GuardedMemoryDeathTest, EndsWhoTouchesAGuard) {
  const GuardedMemory memory = std::move(GuardedMemory::Make(64).value());
  EXPECT_EXIT(
      {
        ReportTouchedGuards(2, "touched", 3);
        memory.data()[64] = std::byte{1};
      },
      testing::ExitedWithCode(3), "touched");
}

}  // namespace
}  // namespace tenon::measure
