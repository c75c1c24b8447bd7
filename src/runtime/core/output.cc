// Output tensors and results, made by TVM-FFI where it is there, so that its owners know them.
#include "runtime/core/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/core/error.h"
#include "runtime/core/foreign.h"
#include "runtime/core/host.h"
#include "runtime/core/object.h"
#include "tenon/kernel_abi.h"

namespace tenon::runtime {
namespace {

void SetNone(tn_ffi_any* value) { *value = {TN_FFI_NONE, 0, {0}}; }

void SetObject(void* object, tn_ffi_any* out) {
  out->type_index = static_cast<tn_ffi_object*>(object)->type_index;
  out->padding = 0;
  out->u.v_obj = static_cast<tn_ffi_object*>(object);
}

void* DataOf(void* tensor) {
  static char no_elements;  // frameworks give null for an empty tensor
  const tn_dl_tensor& view = static_cast<tn_ffi_tensor*>(tensor)->dl_tensor;
  return view.data ? static_cast<char*>(view.data) + view.byte_offset : &no_elements;
}

// A managed view of one of our tensors; it holds the tensor's reference.
struct Exported {
  tn_dl_managed_tensor managed;
  tn_ffi_tensor* tensor;
};

void DeleteExported(tn_dl_managed_tensor* self) {
  Release(&reinterpret_cast<Exported*>(self)->tensor->header);
  free(self);
}

int32_t OutOfMemory(int64_t bytes) {
  char message[96];
  snprintf(message, sizeof message, "out of memory: an output of %lld bytes",
           static_cast<long long>(bytes));
  return Fail("MemoryError", message);
}

// From the allocator that a framework has set, so that the output is that framework's own.
int32_t FromAllocator(const TvmFfi& ffi, tn_dl_data_type dtype, int32_t ndim, const int64_t* shape,
                      tn_dl_device device, tn_ffi_any* out, void** out_data) {
  tn_dl_tensor prototype = {nullptr, device, ndim, dtype, const_cast<int64_t*>(shape), nullptr, 0};
  void* object = nullptr;
  if (ffi.env_tensor_alloc(&prototype, &object) != 0) return -1;  // TVM-FFI has set the error
  SetObject(object, out);
  *out_data = DataOf(object);
  return 0;
}

// Hands our tensor to TVM-FFI, which wraps it in an object of its own.
int32_t Wrap(const TvmFfi& ffi, tn_ffi_tensor* tensor, void** out) {
  auto* exported = static_cast<Exported*>(malloc(sizeof(Exported)));
  if (!exported) {
    Release(&tensor->header);
    return OutOfMemory(sizeof(Exported));
  }
  *exported = {{1, 0, nullptr, DeleteExported, 0, tensor->dl_tensor}, tensor};
  if (ffi.tensor_from_dlpack_versioned(&exported->managed, 0, 0, out) == 0) return 0;
  DeleteExported(&exported->managed);
  return -1;
}

// A tensor on the CPU as TVM-FFI's object. What it views begins a block that free() itself gives
// back, so that the tensor may outlive this library.
int32_t MakeForTvmFfi(const TvmFfi& ffi, tn_dl_data_type dtype, int32_t ndim, const int64_t* shape,
                      tn_ffi_any* out, void** out_data) {
  const size_t dims = static_cast<size_t>(ndim);
  const size_t head_bytes = sizeof(tn_dl_managed_tensor) + 2 * dims * sizeof(int64_t);
  const auto bytes = static_cast<size_t>(TensorBytes(dtype, ndim, shape));
  const size_t room = bytes < SIZE_MAX / 2 ? head_bytes + 63 + bytes : 0;
  auto* managed = static_cast<tn_dl_managed_tensor*>(room ? malloc(room) : nullptr);
  if (!managed) return OutOfMemory(static_cast<int64_t>(bytes));
  auto* dims_at = reinterpret_cast<int64_t*>(managed + 1);
  FillCompact(ndim, shape, dims_at, dims_at + ndim);
  const uintptr_t end = reinterpret_cast<uintptr_t>(managed) + head_bytes;
  void* data = reinterpret_cast<void*>((end + 63) & ~uintptr_t{63});
  auto* deleter = reinterpret_cast<void (*)(tn_dl_managed_tensor*)>(free);
  *managed = {1, 0, nullptr, deleter, 0, {}};
  managed->dl_tensor = {data, {TN_DL_CPU, 0}, ndim, dtype, dims_at, dims_at + ndim, 0};
  void* object = nullptr;
  if (ffi.tensor_from_dlpack_versioned(managed, 0, 0, &object) != 0) {
    free(managed);
    return -1;
  }
  SetObject(object, out);
  *out_data = data;
  return 0;
}

// On the CPU, without what the runtime knows of devices.
int32_t MakeOnCpu(tn_dl_data_type dtype, int32_t ndim, const int64_t* shape, tn_dl_device,
                  tn_ffi_tensor** out) {
  *out = MakeCpuTensor(dtype, ndim, shape);
  return *out ? 0 : OutOfMemory(TensorBytes(dtype, ndim, shape));
}

int32_t ReturnArray(tn_ffi_any* tensors, int32_t n, tn_ffi_any* result) {
  const TvmFfi* ffi = FindTvmFfi();
  if (ffi && ffi->function_get_global && ffi->function_call) {
    static const tn_ffi_byte_array name = {"ffi.Array", 9};
    void* make_array = nullptr;
    if (ffi->function_get_global(&name, &make_array) != 0) return -1;
    if (make_array) {
      int32_t status = ffi->function_call(make_array, tensors, n, result);
      Release(static_cast<tn_ffi_object*>(make_array));
      return status;  // the array holds references of its own
    }
  }
  tn_ffi_array* array = MakeArray(tensors, n);
  if (!array) return OutOfMemory(n * int64_t{sizeof(tn_ffi_any)});
  for (int32_t i = 0; i < n; ++i) SetNone(&tensors[i]);
  SetObject(array, result);
  return 0;
}

}  // namespace

int32_t AllocateOutput(int32_t dtype_packed, int32_t ndim, const int64_t* shape,
                       tn_dl_device device, MakeTensorFn make, tn_ffi_any* out, void** out_data) {
  SetNone(out);
  tn_dl_data_type dtype;
  static_assert(sizeof dtype == sizeof dtype_packed);
  memcpy(&dtype, &dtype_packed, sizeof dtype);
  if (ndim < 0 || ndim > kMaxDims || TensorBytes(dtype, ndim, shape) < 0) {
    return Fail("ValueError", "an output has a negative dim, too many dims or too many elements");
  }
  if (!MayTake(TensorBytes(dtype, ndim, shape)))
    return Fail("MemoryError", "more memory than the call may have: an output");
  const TvmFfi* ffi = FindTvmFfi();
  if (ffi && ffi->env_tensor_alloc && ffi->env_get_allocator && ffi->env_get_allocator()) {
    return FromAllocator(*ffi, dtype, ndim, shape, device, out, out_data);
  }
  const bool wraps = ffi && ffi->tensor_from_dlpack_versioned;
  if (wraps && device.device_type == TN_DL_CPU)
    return MakeForTvmFfi(*ffi, dtype, ndim, shape, out, out_data);
  tn_ffi_tensor* tensor = nullptr;
  if (make(dtype, ndim, shape, device, &tensor) != 0) return -1;
  *out_data = tensor->dl_tensor.data;
  void* object = tensor;
  if (wraps && Wrap(*ffi, tensor, &object) != 0) return -1;
  SetObject(object, out);
  return 0;
}

}  // namespace tenon::runtime

extern "C" int32_t tn_core_tensor_alloc(int32_t dtype_packed, int32_t ndim, const int64_t* shape,
                                        tn_ffi_any* out, void** out_data) {
  using namespace tenon::runtime;
  // A runtime's tensor needs nothing of this library.
  const tn_host_services* host = Host();
  const int32_t status =
      AllocateOutput(dtype_packed, ndim, shape, {TN_DL_CPU, 0},
                     host && host->tensor_make ? host->tensor_make : MakeOnCpu, out, out_data);
  if (status != 0 && host) TakeError(host);
  return status;
}

extern "C" int32_t tn_core_return(tn_ffi_any* tensors, int32_t n, tn_ffi_any* result) {
  using namespace tenon::runtime;
  SetNone(result);
  int32_t status = 0;
  if (n == 1) {
    *result = tensors[0];
    SetNone(&tensors[0]);
  } else if (n > 1) {
    status = ReturnArray(tensors, n, result);
  }
  for (int32_t i = 0; i < n; ++i) tn_core_release(&tensors[i]);
  return status;
}

extern "C" void tn_core_release(tn_ffi_any* value) {
  using namespace tenon::runtime;
  if (value->type_index >= TN_FFI_OBJECT && value->u.v_obj) Release(value->u.v_obj);
  SetNone(value);
}
