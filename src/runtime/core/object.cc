#include "runtime/core/object.h"

#include <stdlib.h>
#include <string.h>

#include <atomic>

namespace tenon::runtime {
namespace {

enum DeleterFlag { kStrong = 1, kWeak = 2 };

// TVM-FFI 0.1.13 and later keep a pointer to a reclaim function just before each object; null says
// that the deleter frees.
struct Prefix {
  void* block;  // what malloc gave
  void* delete_space;
};

void DeleteTensor(void* self, int flags) {
  if (flags & kWeak) FreeObject(self);
}

void DeleteArray(void* self, int flags) {
  auto* array = static_cast<tn_ffi_array*>(self);
  if (flags & kStrong) {
    for (int64_t i = 0; i < array->size; ++i) {
      if (array->data[i].type_index >= TN_FFI_OBJECT) Release(array->data[i].u.v_obj);
    }
  }
  if (flags & kWeak) FreeObject(self);
}

size_t AlignUp(size_t value, size_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

}  // namespace

void Retain(tn_ffi_object* object) {
  std::atomic_ref<uint64_t>(object->combined_ref_count)
      .fetch_add(TN_FFI_REF_STRONG, std::memory_order_relaxed);
}

void Release(tn_ffi_object* object) {
  // Acquire and release: TVM-FFI uses a release and a fence, which thread sanitizers do not see.
  std::atomic_ref<uint64_t> count(object->combined_ref_count);
  uint64_t before = count.fetch_sub(TN_FFI_REF_STRONG, std::memory_order_acq_rel);
  if (before == TN_FFI_REF_NEW) {
    if (object->deleter) object->deleter(object, kStrong | kWeak);
  } else if ((before & 0xffffffff) == 1) {
    if (object->deleter) object->deleter(object, kStrong);
    before = count.fetch_sub(TN_FFI_REF_WEAK, std::memory_order_acq_rel);
    if (before == TN_FFI_REF_WEAK && object->deleter) object->deleter(object, kWeak);
  }
}

void* AllocateObject(size_t bytes, size_t alignment, int32_t type_index,
                     void (*deleter)(void* self, int flags)) {
  if (bytes > SIZE_MAX / 2) return nullptr;
  void* block = malloc(bytes + sizeof(Prefix) + alignment);
  if (!block) return nullptr;
  char* first = static_cast<char*>(block) + sizeof(Prefix);
  const auto address = reinterpret_cast<uintptr_t>(first);
  char* start = first + (AlignUp(address, alignment) - address);
  auto* object = reinterpret_cast<tn_ffi_object*>(start);
  auto* prefix = reinterpret_cast<Prefix*>(start) - 1;
  *prefix = {block, nullptr};
  *object = {TN_FFI_REF_NEW, type_index, 0, deleter};
  return object;
}

void FreeObject(void* object) { free((static_cast<Prefix*>(object) - 1)->block); }

int64_t TensorBytes(tn_dl_data_type dtype, int32_t ndim, const int64_t* shape) {
  int64_t elements = 1;
  bool empty = false, large = false;
  for (int32_t i = 0; i < ndim; ++i) {
    if (shape[i] < 0) return -1;
    empty |= shape[i] == 0;
    large |= shape[i] > kMostOfDim;
  }
  if (empty) return large ? -1 : 0;
  for (int32_t i = 0; i < ndim; ++i) {
    if (__builtin_mul_overflow(elements, shape[i], &elements)) return -1;
  }
  int64_t bits;
  if (__builtin_mul_overflow(elements, int64_t{dtype.bits} * dtype.lanes, &bits)) return -1;
  if (bits > INT64_MAX - 7) return -1;
  return (bits + 7) / 8;
}

void FillCompact(int32_t ndim, const int64_t* shape, int64_t* out_shape, int64_t* out_strides) {
  uint64_t stride = 1;  // wraps only where another dim is 0, and then no element is addressed
  for (int32_t i = ndim - 1; i >= 0; --i) {
    out_shape[i] = shape[i];
    out_strides[i] = static_cast<int64_t>(stride);
    stride *= shape[i] > 0 ? static_cast<uint64_t>(shape[i]) : 1;
  }
}

tn_ffi_tensor* MakeCpuTensor(tn_dl_data_type dtype, int32_t ndim, const int64_t* shape) {
  size_t dims_at = sizeof(tn_ffi_tensor);
  size_t dims_bytes = static_cast<size_t>(ndim) * sizeof(int64_t);
  size_t data_at = AlignUp(dims_at + 2 * dims_bytes, 64);
  size_t bytes = static_cast<size_t>(TensorBytes(dtype, ndim, shape));
  auto* tensor =
      static_cast<tn_ffi_tensor*>(AllocateObject(data_at + bytes, 64, TN_FFI_TENSOR, DeleteTensor));
  if (!tensor) return nullptr;
  auto* base = reinterpret_cast<char*>(tensor);
  auto* dims = reinterpret_cast<int64_t*>(base + dims_at);
  int64_t* strides = dims + ndim;
  FillCompact(ndim, shape, dims, strides);
  tensor->dl_tensor = {base + data_at, {TN_DL_CPU, 0}, ndim, dtype, dims, strides, 0};
  return tensor;
}

tn_ffi_array* MakeArray(const tn_ffi_any* items, int32_t n) {
  size_t items_bytes = static_cast<size_t>(n) * sizeof(tn_ffi_any);
  auto* array = static_cast<tn_ffi_array*>(
      AllocateObject(sizeof(tn_ffi_array) + items_bytes, 64, TN_FFI_ARRAY, DeleteArray));
  if (!array) return nullptr;
  array->data = reinterpret_cast<tn_ffi_any*>(array + 1);
  array->size = n;
  array->capacity = n;
  array->data_deleter = nullptr;
  memcpy(array->data, items, items_bytes);
  return array;
}

}  // namespace tenon::runtime
