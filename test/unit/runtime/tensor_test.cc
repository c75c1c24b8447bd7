#include <vector>

#include "tenon/tenon.hpp"
#include "testing.h"

namespace tenon::runtime {
namespace {

std::string What(void (*action)()) {
  try {
    action();
  } catch (const Error& error) {
    return error.kind() + ": " + error.what();
  }
  return "no error";
}

TEST(Tensor, CopiesInAndOut) {
  Tensor tensor = Tensor::Empty({2, 3}, DataType::kInt16);
  const int16_t values[] = {1, 2, 3, 4, 5, 6};
  tensor.CopyFromBytes(values, 12);
  int16_t back[6] = {};
  tensor.CopyToBytes(back, 12);
  EXPECT_EQ(std::vector(back, back + 6), std::vector(values, values + 6));
  EXPECT_EQ(tensor.bytes(), 12);
  EXPECT_EQ(tensor.num_elements(), 6);
  EXPECT_EQ(tensor.dtype(), DataType::kInt16);
  Tensor scalar = Tensor::Empty({}, DataType::kFloat64);
  EXPECT_EQ(scalar.bytes(), 8);
  Tensor none = Tensor::Empty({0, 4}, DataType::kFloat64);
  none.CopyFromBytes(nullptr, 0);
}

TEST(Tensor, Errors) {
  EXPECT_EQ(What([] { Tensor::Empty({2}, DataType::kInt8).CopyFromBytes("x", 1); }),
            "ValueError: the tensor has 2 bytes but 1 were given");
  EXPECT_EQ(
      What([] { Tensor::Empty({-1}, DataType::kInt8); }),
      "ValueError: expected a shape of at most 64 dims, none negative, whose size fits 63 bits");
  EXPECT_EQ(What([] { Tensor::Empty({1}, DataType::kInt8, Device::Cuda(3)); }),
            "RuntimeError: there is no device cuda:3: this runtime sees 2 of that kind");
  EXPECT_EQ(What([] { Tensor::Empty({1}, DataType::kInt8, Device::Cpu(1)); }),
            "RuntimeError: there is no device cpu:1: this runtime sees 1 of that kind");
}

TEST(Tensor, SharesByCopy) {
  Tensor a = Tensor::Empty({1}, DataType::kInt8);
  Tensor b = a;
  EXPECT_EQ(a.data(), b.data());
  Tensor c = std::move(a);
  EXPECT_FALSE(a);  // NOLINT(bugprone-use-after-move)
  b = Tensor();
  EXPECT_EQ(c.handle()->header.combined_ref_count, TN_FFI_REF_NEW);
}

TEST(Tensor, WrapsMemory) {
  float data[4] = {1, 2, 3, 4};
  Tensor tensor = Tensor::Wrap(data, {4}, DataType::kFloat32);
  EXPECT_EQ(tensor.data(), data);
  EXPECT_THROW(Tensor::Wrap(nullptr, {4}, DataType::kFloat32), Error);
  EXPECT_EQ(Tensor::Wrap(nullptr, {0, 4}, DataType::kFloat32).data(), nullptr);
}

TEST(Tensor, TakesOverDlpack) {
  static int deleted;
  deleted = 0;
  int32_t data[6] = {0, 1, 2, 3, 4, 5};
  int64_t shape[] = {2, 2}, strides[] = {3, 1};
  tn_dl_managed_tensor managed = {
      1,       3,
      nullptr, [](tn_dl_managed_tensor*) { deleted++; },
      0,       {data, {TN_DL_CPU, 0}, 2, {TN_DL_INT, 32, 1}, shape, strides, 4}};
  {
    Tensor tensor = Tensor::FromDLPack(&managed);
    EXPECT_EQ(tensor.data(), data + 1);
    EXPECT_EQ(tensor.view().strides[0], 3);
    int32_t back[4];
    try {
      tensor.CopyToBytes(back, 16);
      FAIL();
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "expected a compact row-major tensor but its strides are others");
    }
    EXPECT_EQ(deleted, 0);
  }
  EXPECT_EQ(deleted, 1);
  managed.version_major = 2;
  EXPECT_THROW(Tensor::FromDLPack(&managed), Error);
  EXPECT_EQ(deleted, 1);
}

TEST(Tensor, StridesOfUnitDimsDoNotCount) {
  int8_t data[3] = {7, 8, 9};
  int64_t shape[] = {1, 3, 1}, strides[] = {99, 1, 50};
  tn_dl_managed_tensor managed = {
      1, 0, nullptr, nullptr, 0, {data, {TN_DL_CPU, 0}, 3, {TN_DL_INT, 8, 1}, shape, strides, 0}};
  int8_t back[3];
  Tensor::FromDLPack(&managed).CopyToBytes(back, 3);
  EXPECT_EQ(back[2], 9);
}

TEST(Tensor, NullDevice) {
  EXPECT_TRUE(Device::Null().exists());
  EXPECT_FALSE(Device::Cuda(2).exists());
  Tensor tensor = Tensor::Empty({1 << 20}, DataType::kFloat32, Device::Null());
  std::vector<float> values(1 << 20, 1.0f);
  tensor.CopyFromBytes(values.data(), tensor.bytes());
  tensor.CopyToBytes(values.data(), tensor.bytes());
  EXPECT_EQ(values[12345], 0.0f);
}

}  // namespace
}  // namespace tenon::runtime
