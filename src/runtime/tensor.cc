// Tensors of the C API.
#include <string.h>

#include "runtime/core/error.h"
#include "runtime/core/object.h"
#include "runtime/device/device.h"
#include "runtime/device/tensor.h"
#include "tenon/c_api.h"
#include "tenon/kernel_abi.h"

namespace tenon::runtime {
namespace {

bool IsCompact(const tn_dl_tensor& view) {
  if (!view.strides) return true;
  int64_t stride = 1;
  for (int32_t i = view.ndim - 1; i >= 0; --i) {
    if (view.shape[i] == 0) return true;
    if (view.shape[i] != 1 && view.strides[i] != stride) return false;
    stride *= view.shape[i];
  }
  return true;
}

// The driver for a copy of `bytes` bytes to or from the tensor; null + error where it cannot be.
const DeviceDriver* PrepareCopy(const tn_dl_tensor& view, int64_t bytes) {
  int64_t size = TensorBytes(view.dtype, view.ndim, view.shape);
  if (bytes != size) {
    tn_msg_part parts[] = {{TN_MSG_TEXT, 0, {"the tensor has "}},
                           {TN_MSG_INT, 0, {nullptr}},
                           {TN_MSG_TEXT, 0, {" bytes but "}},
                           {TN_MSG_INT, 0, {nullptr}},
                           {TN_MSG_TEXT, 0, {" were given"}}};
    parts[1].u.i = size;
    parts[3].u.i = bytes;
    tn_core_raise("ValueError", parts, 5);
    return nullptr;
  }
  if (!IsCompact(view)) {
    SetError("ValueError", "expected a compact row-major tensor but its strides are others");
    return nullptr;
  }
  const DeviceDriver* driver = RequireDevice(view.device);
  if (!driver || !driver->opaque || view.byte_offset == 0) return driver;
  SetError("ValueError", "expected a tensor that begins where its memory does: byte_offset 0");
  return nullptr;
}

}  // namespace
}  // namespace tenon::runtime

using namespace tenon::runtime;

int32_t tn_tensor_make(tn_dl_data_type dtype, int32_t ndim, const int64_t* shape,
                       tn_dl_device device, tn_tensor_t** out_tensor) {
  return MakeDeviceTensor(dtype, ndim, shape, device, out_tensor);
}

int32_t tn_tensor_wrap(void* data, tn_dl_data_type dtype, int32_t ndim, const int64_t* shape,
                       tn_dl_device device, tn_tensor_t** out_tensor) {
  if (CheckTensorShape(dtype, ndim, shape) != 0) return -1;
  if (!data && TensorBytes(dtype, ndim, shape) != 0) {
    return Fail("ValueError", "expected the memory of a tensor but got a null pointer");
  }
  OwnedTensor* owned = MakeOwned(dtype, ndim, shape, device);
  if (!owned) return -1;
  owned->tensor.dl_tensor.data = data;
  *out_tensor = &owned->tensor;
  return 0;
}

int32_t tn_tensor_from_dlpack(tn_dl_managed_tensor* managed, tn_tensor_t** out_tensor) {
  if (managed->version_major != 1) {
    return Fail("ValueError", "expected a DLPack tensor of version 1");
  }
  const tn_dl_tensor& view = managed->dl_tensor;
  if (CheckTensorShape(view.dtype, view.ndim, view.shape) != 0) return -1;
  OwnedTensor* owned = MakeOwned(view.dtype, view.ndim, view.shape, view.device);
  if (!owned) return -1;
  tn_dl_tensor& own = owned->tensor.dl_tensor;
  own.data = view.data;
  own.byte_offset = view.byte_offset;
  if (view.strides) {
    memcpy(own.strides, view.strides, static_cast<size_t>(view.ndim) * sizeof(int64_t));
  }
  owned->managed = managed;
  *out_tensor = &owned->tensor;
  return 0;
}

void tn_tensor_retain(tn_tensor_t* tensor) { Retain(&tensor->header); }

void tn_tensor_free(tn_tensor_t* tensor) {
  if (tensor) Release(&tensor->header);
}

int64_t tn_tensor_bytes(const tn_tensor_t* tensor) {
  const tn_dl_tensor& view = tensor->dl_tensor;
  return TensorBytes(view.dtype, view.ndim, view.shape);
}

int32_t tn_tensor_copy_from_bytes(tn_tensor_t* tensor, const void* source, int64_t bytes) {
  const tn_dl_tensor& view = tensor->dl_tensor;
  const DeviceDriver* driver = PrepareCopy(view, bytes);
  if (!driver) return -1;
  return driver->copy_from_host(view.device.device_id,
                                static_cast<char*>(view.data) + view.byte_offset, source, bytes);
}

int32_t tn_tensor_copy_to_bytes(const tn_tensor_t* tensor, void* target, int64_t bytes) {
  const tn_dl_tensor& view = tensor->dl_tensor;
  const DeviceDriver* driver = PrepareCopy(view, bytes);
  if (!driver) return -1;
  return driver->copy_to_host(view.device.device_id, target,
                              static_cast<const char*>(view.data) + view.byte_offset, bytes);
}

int32_t tn_tensor_copy(tn_tensor_t* target, const tn_tensor_t* source) {
  const tn_dl_tensor &to = target->dl_tensor, &from = source->dl_tensor;
  const int64_t bytes = TensorBytes(from.dtype, from.ndim, from.shape);
  const DeviceDriver* reader = PrepareCopy(from, bytes);
  const DeviceDriver* writer = reader ? PrepareCopy(to, bytes) : nullptr;
  if (!writer) return -1;
  void* out = static_cast<char*>(to.data) + to.byte_offset;
  const void* in = static_cast<const char*>(from.data) + from.byte_offset;
  const int32_t to_id = to.device.device_id, from_id = from.device.device_id;
  if (writer == &cpu_driver) return reader->copy_to_host(from_id, out, in, bytes);
  if (reader == &cpu_driver) return writer->copy_from_host(to_id, out, in, bytes);
  if (reader != writer) {
    return Fail("ValueError", "expected devices of one kind, or the CPU on one side of a copy");
  }
  return writer->copy_between(to_id, out, from_id, in, bytes, CurrentStream(to.device));
}

void tn_value_release(tn_ffi_any* value) { tn_core_release(value); }
