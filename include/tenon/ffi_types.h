/* The memory layouts that cross our borders: TVM-FFI values and objects (ABI of apache-tvm-ffi 0.1)
 * and DLPack 1.x tensors, declared here so that nothing of ours needs those projects' headers.
 * test/conformance/ffi checks every size and offset against them. Plain C11 and C++; includes only
 * the compiler's headers. */
#ifndef TENON_FFI_TYPES_H_
#define TENON_FFI_TYPES_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- DLPack ---- */

/* Values of tn_dl_data_type.code. */
enum {
  TN_DL_INT = 0,
  TN_DL_UINT = 1,
  TN_DL_FLOAT = 2,
  TN_DL_HANDLE = 3,
  TN_DL_BFLOAT = 4,
  TN_DL_COMPLEX = 5,
  TN_DL_BOOL = 6,
  TN_DL_FLOAT8_E3M4 = 7,
  TN_DL_FLOAT8_E4M3 = 8,
  TN_DL_FLOAT8_E4M3B11FNUZ = 9,
  TN_DL_FLOAT8_E4M3FN = 10,
  TN_DL_FLOAT8_E4M3FNUZ = 11,
  TN_DL_FLOAT8_E5M2 = 12,
  TN_DL_FLOAT8_E5M2FNUZ = 13,
  TN_DL_FLOAT8_E8M0FNU = 14,
  TN_DL_FLOAT4_E2M1FN = 17
};

/* Values of tn_dl_device.device_type. TN_DL_NULL is DLPack's slot for extension devices: our null
 * device. */
enum {
  TN_DL_CPU = 1,
  TN_DL_CUDA = 2,
  TN_DL_CUDA_HOST = 3,
  TN_DL_OPENCL = 4,
  TN_DL_VULKAN = 7,
  TN_DL_METAL = 8,
  TN_DL_ROCM = 10,
  TN_DL_NULL = 12
};

/* DLDataType. As one little-endian 32-bit word: code | bits << 8 | lanes << 16. */
typedef struct tn_dl_data_type {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} tn_dl_data_type;

/* DLDevice. */
typedef struct tn_dl_device {
  int32_t device_type;
  int32_t device_id;
} tn_dl_device;

/* DLTensor: a view. Its first element is at data + byte_offset; strides count elements, NULL means
 * compact row-major. */
typedef struct tn_dl_tensor {
  void* data;
  tn_dl_device device;
  int32_t ndim;
  tn_dl_data_type dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
} tn_dl_tensor;

/* DLManagedTensorVersioned: a view with an owner; whoever holds it calls deleter(self) once, where
 * it is not NULL. */
typedef struct tn_dl_managed_tensor {
  uint32_t version_major; /* 1 */
  uint32_t version_minor;
  void* manager_ctx;
  void (*deleter)(struct tn_dl_managed_tensor* self);
  uint64_t flags; /* bit 0: read only */
  tn_dl_tensor dl_tensor;
} tn_dl_managed_tensor;

/* ---- TVM-FFI ---- */

/* Values of tn_ffi_any.type_index. From TN_FFI_OBJECT on, v_obj is a counted reference. */
enum {
  TN_FFI_NONE = 0,
  TN_FFI_INT = 1,
  TN_FFI_BOOL = 2, /* in v_int64 */
  TN_FFI_FLOAT = 3,
  TN_FFI_OPAQUE_PTR = 4,
  TN_FFI_DATA_TYPE = 5,
  TN_FFI_DEVICE = 6,
  TN_FFI_DL_TENSOR_PTR = 7, /* DLTensor* in v_ptr, borrowed */
  TN_FFI_RAW_STR = 8,
  TN_FFI_SMALL_STR = 11,
  TN_FFI_OBJECT = 64,
  TN_FFI_STR = 65,
  TN_FFI_ERROR = 67,
  TN_FFI_FUNCTION = 68,
  TN_FFI_SHAPE = 69,
  TN_FFI_TENSOR = 70, /* v_obj points to a tn_ffi_tensor */
  TN_FFI_ARRAY = 71,  /* v_obj points to a tn_ffi_array */
  TN_FFI_MODULE = 73
};

/* TVMFFIObject: the header of every object. combined_ref_count: strong in the low, weak in the high
 * 32 bits; all strong references together hold one weak one, so a new object starts at
 * TN_FFI_REF_NEW. deleter's flags: 1 = the last strong reference is gone (destroy), 2 = the last
 * weak one is gone (free), 3 = both. */
typedef struct tn_ffi_object {
  uint64_t combined_ref_count;
  int32_t type_index;
  uint32_t padding;
  void (*deleter)(void* self, int flags);
} tn_ffi_object;

#define TN_FFI_REF_STRONG ((uint64_t)1)
#define TN_FFI_REF_WEAK ((uint64_t)1 << 32)
#define TN_FFI_REF_NEW (TN_FFI_REF_STRONG | TN_FFI_REF_WEAK)

/* TVMFFIAny: a value. As an argument it borrows what it points to; as a result it owns one
 * reference. padding is 0 except for TN_FFI_SMALL_STR, where it is the length. */
typedef struct tn_ffi_any {
  int32_t type_index;
  uint32_t padding;
  union {
    int64_t v_int64;
    double v_float64;
    void* v_ptr;
    const char* v_c_str;
    tn_ffi_object* v_obj;
    tn_dl_data_type v_dtype;
    tn_dl_device v_device;
    char v_bytes[8];
    uint64_t v_uint64;
  } u;
} tn_ffi_any;

/* TVMFFIByteArray. */
typedef struct tn_ffi_byte_array {
  const char* data;
  size_t size;
} tn_ffi_byte_array;

/* TVMFFIFunctionCell behind its object header. */
typedef struct tn_ffi_function {
  tn_ffi_object header;
  int32_t (*safe_call)(void* self, const tn_ffi_any* args, int32_t num_args, tn_ffi_any* result);
  void* cpp_call;
} tn_ffi_function;

/* A tensor object: DLTensor behind the object header. */
typedef struct tn_ffi_tensor {
  tn_ffi_object header;
  tn_dl_tensor dl_tensor;
} tn_ffi_tensor;

/* ffi.Array: TVMFFISeqCell behind the object header; data points to `size` values. */
typedef struct tn_ffi_array {
  tn_ffi_object header;
  tn_ffi_any* data;
  int64_t size;
  int64_t capacity;
  void (*data_deleter)(void* data);
} tn_ffi_array;

/* The packed signature of every exported function. args are borrowed; *result must come in holding
 * no reference (type_index < TN_FFI_OBJECT) and goes out owned by the caller. Returns 0, or -1 with
 * the thread's error set. `self` is the closure of a function object; our exports ignore it. */
typedef int32_t (*tn_packed_fn)(void* self, const tn_ffi_any* args, int32_t num_args,
                                tn_ffi_any* result);

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif /* TENON_FFI_TYPES_H_ */
