// Outputs without TVM-FFI in the process; with it, see test/conformance/ffi.
#include <cstring>
#include <vector>

#include "runtime/core/object.h"
#include "tenon/kernel_abi.h"
#include "testing.h"

namespace tenon::runtime {
namespace {

constexpr int32_t kFloat32 = TN_DL_FLOAT | 32 << 8 | 1 << 16;

tn_ffi_any MakeOutput(const std::vector<int64_t>& shape) {
  tn_ffi_any value;
  void* data = nullptr;
  EXPECT_EQ(tn_core_tensor_alloc(kFloat32, static_cast<int32_t>(shape.size()), shape.data(), &value,
                                 &data),
            0);
  EXPECT_NE(data, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u);
  return value;
}

TEST(Output, Tensor) {
  tn_ffi_any value = MakeOutput({2, 3, 5});
  ASSERT_EQ(value.type_index, TN_FFI_TENSOR);
  const tn_dl_tensor& view = reinterpret_cast<tn_ffi_tensor*>(value.u.v_obj)->dl_tensor;
  EXPECT_EQ(view.ndim, 3);
  EXPECT_EQ(std::vector(view.shape, view.shape + 3), (std::vector<int64_t>{2, 3, 5}));
  EXPECT_EQ(std::vector(view.strides, view.strides + 3), (std::vector<int64_t>{15, 5, 1}));
  EXPECT_EQ(view.device.device_type, TN_DL_CPU);
  EXPECT_EQ(view.dtype.bits, 32);
  memset(view.data, 0, 120);
  tn_core_release(&value);
  EXPECT_EQ(value.type_index, TN_FFI_NONE);
  tn_core_release(&value);
}

TEST(Output, ScalarsAndEmptyTensors) {
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{}, {0}, {3, 0, 2}, {0, kMostOfDim}}) {
    tn_ffi_any value = MakeOutput(shape);
    tn_core_release(&value);
  }
}

TEST(Output, ImpossibleShapes) {
  tn_ffi_any value;
  void* data;
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{-1},
                                            {int64_t{1} << 62, 4},
                                            {0, kMostOfDim + 1},
                                            std::vector<int64_t>(65, 1)}) {
    EXPECT_EQ(tn_core_tensor_alloc(kFloat32, static_cast<int32_t>(shape.size()), shape.data(),
                                   &value, &data),
              -1);
    EXPECT_EQ(value.type_index, TN_FFI_NONE);
  }
  int64_t huge[] = {int64_t{1} << 55};
  EXPECT_EQ(tn_core_tensor_alloc(kFloat32, 1, huge, &value, &data), -1);
  EXPECT_EQ(LastErrorText(), "MemoryError: out of memory: an output of 144115188075855872 bytes");
}

TEST(Output, Return) {
  tn_ffi_any result, outputs[3];
  EXPECT_EQ(tn_core_return(nullptr, 0, &result), 0);
  EXPECT_EQ(result.type_index, TN_FFI_NONE);

  outputs[0] = MakeOutput({1});
  tn_ffi_object* tensor = outputs[0].u.v_obj;
  EXPECT_EQ(tn_core_return(outputs, 1, &result), 0);
  EXPECT_EQ(result.u.v_obj, tensor);
  EXPECT_EQ(outputs[0].type_index, TN_FFI_NONE);
  EXPECT_EQ(tensor->combined_ref_count, TN_FFI_REF_NEW);
  tn_core_release(&result);

  for (auto& output : outputs) output = MakeOutput({2, 2});
  tensor = outputs[2].u.v_obj;
  Retain(tensor);
  EXPECT_EQ(tn_core_return(outputs, 3, &result), 0);
  ASSERT_EQ(result.type_index, TN_FFI_ARRAY);
  auto* array = reinterpret_cast<tn_ffi_array*>(result.u.v_obj);
  EXPECT_EQ(array->size, 3);
  EXPECT_EQ(array->data[2].u.v_obj, tensor);
  EXPECT_EQ(tensor->combined_ref_count, TN_FFI_REF_NEW + 1);
  tn_core_release(&result);
  EXPECT_EQ(tensor->combined_ref_count, TN_FFI_REF_NEW);
  Release(tensor);
}

TEST(Output, TensorBytes) {
  int64_t shape[] = {3, 5};
  EXPECT_EQ(TensorBytes({TN_DL_FLOAT, 32, 1}, 2, shape), 60);
  EXPECT_EQ(TensorBytes({TN_DL_INT, 4, 1}, 2, shape), 8);
  EXPECT_EQ(TensorBytes({TN_DL_BOOL, 8, 1}, 0, shape), 1);
  EXPECT_EQ(TensorBytes({TN_DL_FLOAT, 16, 4}, 2, shape), 120);
}

}  // namespace
}  // namespace tenon::runtime
