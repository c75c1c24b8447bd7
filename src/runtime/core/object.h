// TVM-FFI objects of our own make, and reference counts of anybody's.
#pragma once

#include "tenon/ffi_types.h"

namespace tenon::runtime {

void Retain(tn_ffi_object* object);
void Release(tn_ffi_object* object);

/// Memory for an object of `bytes` bytes aligned to `alignment` (a power of two, >= 64), its header
/// filled in with one reference; `deleter` frees it with FreeObject. Null when memory is out.
void* AllocateObject(size_t bytes, size_t alignment, int32_t type_index,
                     void (*deleter)(void* self, int flags));
void FreeObject(void* object);

/// More elements no memory has. Compiled code relies on it for tensors without elements, too.
constexpr int64_t kMostOfDim = (int64_t{1} << 47) - 1;

/// The bytes that a compact tensor's elements take (sub-byte types are packed), or -1 where a dim
/// is negative, or beyond kMostOfDim where another is 0, or the product does not fit.
int64_t TensorBytes(tn_dl_data_type dtype, int32_t ndim, const int64_t* shape);

constexpr int32_t kMaxDims = 64;

/// Writes the dims and the strides of a compact row-major tensor.
void FillCompact(int32_t ndim, const int64_t* shape, int64_t* out_shape, int64_t* out_strides);

/// An uninitialised compact tensor on the CPU that owns its memory (aligned to 64 bytes); null when
/// memory is out. The shape must have passed TensorBytes.
tn_ffi_tensor* MakeCpuTensor(tn_dl_data_type dtype, int32_t ndim, const int64_t* shape);

/// Makes an ffi.Array of our own that takes over the references in items[0..n); null when memory is
/// out.
tn_ffi_array* MakeArray(const tn_ffi_any* items, int32_t n);

}  // namespace tenon::runtime
