#include "runtime/device/tensor.h"

#include "runtime/core/error.h"
#include "runtime/core/object.h"
#include "tenon/kernel_abi.h"

namespace tenon::runtime {
namespace {

void DeleteOwned(void* self, int flags) {
  auto* owned = static_cast<OwnedTensor*>(self);
  if (flags & 1) {
    const tn_dl_tensor& view = owned->tensor.dl_tensor;
    if (owned->driver) owned->driver->free(view.device.device_id, view.data);
    if (owned->managed && owned->managed->deleter) owned->managed->deleter(owned->managed);
  }
  if (flags & 2) FreeObject(self);
}

}  // namespace

OwnedTensor* MakeOwned(tn_dl_data_type dtype, int32_t ndim, const int64_t* shape,
                       tn_dl_device device) {
  size_t dims = static_cast<size_t>(ndim);
  size_t bytes = sizeof(OwnedTensor) + 2 * dims * sizeof(int64_t);
  auto* owned = static_cast<OwnedTensor*>(AllocateObject(bytes, 64, TN_FFI_TENSOR, DeleteOwned));
  if (!owned) {
    SetError("MemoryError", "out of memory");
    return nullptr;
  }
  owned->driver = nullptr;
  owned->managed = nullptr;
  auto* own_shape = reinterpret_cast<int64_t*>(owned + 1);
  int64_t* strides = own_shape + dims;
  owned->tensor.dl_tensor = {nullptr, device, ndim, dtype, own_shape, strides, 0};
  FillCompact(ndim, shape, own_shape, strides);
  return owned;
}

int32_t CheckTensorShape(tn_dl_data_type dtype, int32_t ndim, const int64_t* shape) {
  if (ndim >= 0 && ndim <= kMaxDims && TensorBytes(dtype, ndim, shape) >= 0) return 0;
  return Fail("ValueError",
              "expected a shape of at most 64 dims, none negative, whose size fits 63 bits");
}

int32_t MakeDeviceTensor(tn_dl_data_type dtype, int32_t ndim, const int64_t* shape,
                         tn_dl_device device, tn_ffi_tensor** out_tensor) {
  if (CheckTensorShape(dtype, ndim, shape) != 0) return -1;
  const DeviceDriver* driver = RequireDevice(device);
  if (!driver) return -1;
  OwnedTensor* owned = MakeOwned(dtype, ndim, shape, device);
  if (!owned) return -1;
  void* data;
  if (driver->allocate(device.device_id, TensorBytes(dtype, ndim, shape), &data) != 0) {
    Release(&owned->tensor.header);
    return -1;
  }
  owned->driver = driver;
  owned->tensor.dl_tensor.data = data;
  *out_tensor = &owned->tensor;
  return 0;
}

}  // namespace tenon::runtime

extern "C" int32_t tn_core_device_of(const tn_ffi_any* args, int32_t n, int32_t device_type) {
  for (int32_t i = 0; i < n; ++i) {
    const tn_dl_tensor* t = nullptr;
    if (args[i].type_index == TN_FFI_TENSOR) {
      t = &reinterpret_cast<tn_ffi_tensor*>(args[i].u.v_obj)->dl_tensor;
    } else if (args[i].type_index == TN_FFI_DL_TENSOR_PTR) {
      t = static_cast<const tn_dl_tensor*>(args[i].u.v_ptr);
    }
    if (t && t->device.device_type == device_type) return t->device.device_id;
  }
  return 0;
}
