// The array functions of TVM's C runtime over Tenon's runtime, header-only. A handle is a DLTensor*
// that this library made. As there: 0 on success, -1 with TVMGetLastError() otherwise; nothing
// throws.
#ifndef TVM_RUNTIME_C_RUNTIME_API_H_
#define TVM_RUNTIME_C_RUNTIME_API_H_

#include <dlpack/dlpack.h>
#include <tenon/c_api.h>

#include <cstddef>
#include <cstdint>

using tvm_index_t = int64_t;
using TVMArrayHandle = DLTensor*;
using TVMStreamHandle = void*;

namespace tvm::runtime::detail {

static_assert(sizeof(DLTensor) == sizeof(tn_dl_tensor), "expected DLPack 0.5 or newer");
static_assert(offsetof(DLTensor, byte_offset) == offsetof(tn_dl_tensor, byte_offset));

/// The tensor object around a DLTensor that this library made.
inline tn_tensor_t* ObjectOf(const DLTensor* array) {
  if (array == nullptr) return nullptr;
  auto* at = reinterpret_cast<const char*>(array) - offsetof(tn_ffi_tensor, dl_tensor);
  return reinterpret_cast<tn_tensor_t*>(const_cast<char*>(at));
}
inline DLTensor* ViewOf(tn_tensor_t* object) {
  return reinterpret_cast<DLTensor*>(&object->dl_tensor);
}
inline tn_dl_device DeviceOf(int type, int id) { return {type, id}; }

/// `from` as the newer kind of managed tensor, which frees the older one with itself.
struct Adopted {
  tn_dl_managed_tensor now;
  DLManagedTensor* from;
};
inline int FromManaged(DLManagedTensor* from, tn_tensor_t** out) {
  auto* adopted = new Adopted{{1, 0, nullptr, nullptr, 0, {}}, from};
  const DLTensor& view = from->dl_tensor;
  adopted->now.dl_tensor = {
      view.data,       DeviceOf(view.device.device_type, view.device.device_id),
      view.ndim,       {view.dtype.code, view.dtype.bits, view.dtype.lanes},
      view.shape,      view.strides,
      view.byte_offset};
  adopted->now.manager_ctx = adopted;
  adopted->now.deleter = [](tn_dl_managed_tensor* self) {
    auto* whole = static_cast<Adopted*>(self->manager_ctx);
    if (whole->from->deleter != nullptr) whole->from->deleter(whole->from);
    delete whole;
  };
  const int32_t status = tn_tensor_from_dlpack(&adopted->now, out);
  if (status != 0) delete adopted;  // the caller keeps `from`
  return status;
}

}  // namespace tvm::runtime::detail

inline const char* TVMGetLastError() { return tn_last_error(nullptr); }

/// A new compact array, contents unspecified; freed with TVMArrayFree. *out is null where this
/// fails.
inline int TVMArrayAlloc(const tvm_index_t* shape, int ndim, int dtype_code, int dtype_bits,
                         int dtype_lanes, int device_type, int device_id, TVMArrayHandle* out) {
  *out = nullptr;
  tn_tensor_t* object = nullptr;
  const tn_dl_data_type dtype = {static_cast<uint8_t>(dtype_code), static_cast<uint8_t>(dtype_bits),
                                 static_cast<uint16_t>(dtype_lanes)};
  const int32_t status = tn_tensor_make(
      dtype, ndim, shape, tvm::runtime::detail::DeviceOf(device_type, device_id), &object);
  if (status == 0) *out = tvm::runtime::detail::ViewOf(object);
  return status;
}

/// Frees what TVMArrayAlloc, TVMArrayFromDLPack or TVMArrayFromDLTensor gave.
inline int TVMArrayFree(TVMArrayHandle handle) {
  tn_tensor_free(tvm::runtime::detail::ObjectOf(handle));
  return 0;
}

/// `bytes` must be the array's size.
inline int TVMArrayCopyFromBytes(TVMArrayHandle handle, const void* data, size_t bytes) {
  return tn_tensor_copy_from_bytes(tvm::runtime::detail::ObjectOf(handle), data,
                                   static_cast<int64_t>(bytes));
}
inline int TVMArrayCopyToBytes(TVMArrayHandle handle, void* data, size_t bytes) {
  return tn_tensor_copy_to_bytes(tvm::runtime::detail::ObjectOf(handle), data,
                                 static_cast<int64_t>(bytes));
}

/// Takes `from` over, unless it fails. No copy.
inline int TVMArrayFromDLPack(DLManagedTensor* from, TVMArrayHandle* out) {
  *out = nullptr;
  tn_tensor_t* object = nullptr;
  const int status = tvm::runtime::detail::FromManaged(from, &object);
  if (status == 0) *out = tvm::runtime::detail::ViewOf(object);
  return status;
}

/// An array over the memory of a compact DLTensor, which the caller keeps until the array is freed.
/// No copy.
inline int TVMArrayFromDLTensor(const DLTensor* from, TVMArrayHandle* out) {
  *out = nullptr;
  tn_tensor_t* object = nullptr;
  const int32_t status = tn_tensor_wrap(
      static_cast<char*>(from->data) + from->byte_offset,
      {from->dtype.code, from->dtype.bits, from->dtype.lanes}, from->ndim, from->shape,
      tvm::runtime::detail::DeviceOf(from->device.device_type, from->device.device_id), &object);
  if (status == 0) *out = tvm::runtime::detail::ViewOf(object);
  return status;
}

/// Between arrays that this library made, of as many bytes. On `stream` where it is not null.
inline int TVMArrayCopyFromTo(TVMArrayHandle from, TVMArrayHandle to, TVMStreamHandle stream) {
  namespace detail = tvm::runtime::detail;
  const tn_dl_device device = detail::DeviceOf(to->device.device_type, to->device.device_id);
  void* before = nullptr;
  if (stream != nullptr && tn_stream_set(device, stream, &before) != 0) return -1;
  const int32_t status = tn_tensor_copy(detail::ObjectOf(to), detail::ObjectOf(from));
  if (stream != nullptr) tn_stream_set(device, before, nullptr);
  return status;
}

/// The stream of this thread's work on the device; null: the device's default.
inline int TVMSetStream(int device_type, int device_id, TVMStreamHandle stream) {
  return tn_stream_set(tvm::runtime::detail::DeviceOf(device_type, device_id), stream, nullptr);
}
inline int TVMSynchronize(int device_type, int device_id, TVMStreamHandle stream) {
  if (device_type == kDLCPU) return 0;  // its work is done when a call returns
  return tn_stream_wait(tvm::runtime::detail::DeviceOf(device_type, device_id), stream);
}

#endif  // TVM_RUNTIME_C_RUNTIME_API_H_
