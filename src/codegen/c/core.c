/* The runtime core of a model that is C source: what tenon/kernel_abi.h asks for, for one thread,
 * in portable C11. It is written into the source that calls it. Where TVM-FFI is in the process (it
 * is looked for by weak symbols, so on ELF systems), errors and outputs are made by it. */
#include <tenon/ffi_types.h>
/* What stands above is written out with the text of that header. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__GNUC__)
#define TN_UNUSED __attribute__((unused))
#else
#define TN_UNUSED
#endif
#ifndef TN_THREAD_LOCAL
#define TN_THREAD_LOCAL _Thread_local
#endif

enum {
  TN_MSG_TEXT = 0,
  TN_MSG_INT = 1,
  TN_MSG_DOUBLE = 2,
  TN_MSG_DTYPE = 3,
  TN_MSG_DEVICE_TYPE = 4,
  TN_MSG_C_STRING = 5
};

typedef struct tn_msg_part {
  int32_t kind;
  int32_t reserved;
  union {
    const char* text;
    int64_t i;
    double f;
  } u;
} tn_msg_part;

#if defined(__ELF__) && defined(__GNUC__)
#define TN_WEAK __attribute__((weak))
extern TN_WEAK void TVMFFIErrorSetRaisedFromCStr(const char* kind, const char* message);
extern TN_WEAK int TVMFFIEnvTensorAlloc(tn_dl_tensor* prototype, void** out);
extern TN_WEAK void* TVMFFIEnvGetDLPackManagedTensorAllocator(void);
extern TN_WEAK int TVMFFITensorFromDLPackVersioned(tn_dl_managed_tensor* from, int32_t align,
                                                   int32_t contiguous, void** out);
extern TN_WEAK int TVMFFIFunctionGetGlobal(const tn_ffi_byte_array* name, void** out);
extern TN_WEAK int TVMFFIFunctionCall(void* function, tn_ffi_any* args, int32_t n,
                                      tn_ffi_any* result);
#define TN_TVM_FFI 1
#else
#define TN_TVM_FFI 0
#endif

/* ---- Errors ---- */

/* Where the library has Tenon's own core besides, errors are told to that. */
#ifdef TN_WITH_CORE
#define tn_core_raise tn_source_raise
extern int32_t tn_library_raise(const char* kind, const tn_msg_part* parts,
                                int32_t n) __asm__("tn_core_raise");
#endif

static TN_THREAD_LOCAL char tn_error_text[1024];

static TN_UNUSED int32_t tn_core_fail(const char* kind, const char* message) {
  snprintf(tn_error_text, sizeof tn_error_text, "%s: %s", kind, message);
#if defined(TN_WITH_CORE)
  const tn_msg_part text = {TN_MSG_TEXT, 0, {.text = message}};
  tn_library_raise(kind, &text, 1);
#elif TN_TVM_FFI
  if (TVMFFIErrorSetRaisedFromCStr) TVMFFIErrorSetRaisedFromCStr(kind, message);
#endif
  return -1;
}

static TN_UNUSED void tn_core_dtype_name(char* out, size_t size, uint32_t packed) {
  static const struct {
    uint32_t code;
    const char* name;
    int has_bits;
  } names[] = {{TN_DL_INT, "int", 1},
               {TN_DL_UINT, "uint", 1},
               {TN_DL_FLOAT, "float", 1},
               {TN_DL_HANDLE, "handle", 1},
               {TN_DL_BFLOAT, "bfloat", 1},
               {TN_DL_COMPLEX, "complex", 1},
               {TN_DL_FLOAT8_E3M4, "float8_e3m4", 0},
               {TN_DL_FLOAT8_E4M3, "float8_e4m3", 0},
               {TN_DL_FLOAT8_E4M3B11FNUZ, "float8_e4m3b11fnuz", 0},
               {TN_DL_FLOAT8_E4M3FN, "float8_e4m3fn", 0},
               {TN_DL_FLOAT8_E4M3FNUZ, "float8_e4m3fnuz", 0},
               {TN_DL_FLOAT8_E5M2, "float8_e5m2", 0},
               {TN_DL_FLOAT8_E5M2FNUZ, "float8_e5m2fnuz", 0},
               {TN_DL_FLOAT8_E8M0FNU, "float8_e8m0fnu", 0},
               {TN_DL_FLOAT4_E2M1FN, "float4_e2m1fn", 0}};
  const unsigned code = packed & 0xff, bits = packed >> 8 & 0xff, lanes = packed >> 16;
  int used = -1;
  for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
    if (names[i].code != code) continue;
    used = names[i].has_bits ? snprintf(out, size, "%s%u", names[i].name, bits)
                             : snprintf(out, size, "%s", names[i].name);
  }
  if (code == TN_DL_BOOL) used = snprintf(out, size, bits == 8 ? "bool" : "bool%u", bits);
  if (used < 0) {
    snprintf(out, size, "dtype(code=%u, bits=%u, lanes=%u)", code, bits, lanes);
  } else if (lanes != 1) {
    snprintf(out + used, size - (size_t)used, "x%u", lanes);
  }
}

static TN_UNUSED int32_t tn_core_raise(const char* kind, const tn_msg_part* parts, int32_t n) {
  char message[960];
  size_t used = 0;
  message[0] = '\0';
  for (int32_t i = 0; i < n; ++i) {
    char piece[64];
    const char* text = piece;
    const int64_t value = parts[i].u.i;
    switch (parts[i].kind) {
      case TN_MSG_TEXT: text = parts[i].u.text ? parts[i].u.text : ""; break;
      case TN_MSG_INT: snprintf(piece, sizeof piece, "%lld", (long long)value); break;
      case TN_MSG_DOUBLE: snprintf(piece, sizeof piece, "%g", parts[i].u.f); break;
      case TN_MSG_DTYPE: tn_core_dtype_name(piece, sizeof piece, (uint32_t)value); break;
      case TN_MSG_C_STRING: text = value ? (const char*)(intptr_t)value : ""; break;
      default: /* a device */
        if (value == TN_DL_CPU || value == TN_DL_CUDA) {
          text = value == TN_DL_CPU ? "cpu" : "cuda";
        } else {
          snprintf(piece, sizeof piece, "device(type=%lld)", (long long)value);
        }
    }
    const size_t room = sizeof message - 1 - used, length = strlen(text);
    const size_t taken = length < room ? length : room;
    memcpy(message + used, text, taken);
    used += taken;
    message[used] = '\0';
  }
  return tn_core_fail(kind, message);
}

/* ---- Running ---- */

/* Which CPU this is, the C compiler saw to. TN_WEIGHTS is defined where they come from a file. */
static TN_UNUSED int32_t tn_core_check_cpu(void) {
#ifdef TN_WEIGHTS
  if (!TN_WEIGHTS) return tn_core_fail("RuntimeError", "the weights have not been loaded");
#endif
  return 0;
}

static TN_UNUSED int32_t tn_core_run_team(int32_t (*body)(void*), void* closure, int32_t most) {
  (void)most;
  return body(closure);
}

/* The block's own address stands before the aligned memory. */
static TN_UNUSED void* tn_core_allocate(size_t bytes, size_t align) {
  if (bytes > SIZE_MAX / 2) return NULL;
  char* block = (char*)malloc(bytes + align + sizeof(void*));
  if (!block) return NULL;
  const uintptr_t start = ((uintptr_t)block + sizeof(void*) + align - 1) / align * align;
  char* memory = block + (start - (uintptr_t)block);
  memcpy(memory - sizeof(void*), &block, sizeof(void*));
  return memory;
}

static TN_UNUSED void tn_core_free(void* memory) {
  void* block;
  if (!memory) return;
  memcpy(&block, (char*)memory - sizeof(void*), sizeof(void*));
  free(block);
}

static TN_UNUSED void* tn_core_arena_acquire(void* instances, int64_t bytes) {
  (void)instances;
  void* arena = tn_core_allocate((size_t)bytes, 64);
  if (!arena) tn_core_fail("RuntimeError", "out of memory: the working memory of a call");
  return arena;
}

static TN_UNUSED void tn_core_arena_release(void* instances, void* arena) {
  (void)instances;
  tn_core_free(arena);
}

/* ---- Objects of TVM-FFI ---- */

#if defined(TN_WITH_CORE)
/* Those of Tenon's own core: tensors may outlive this library, and the code that frees them. */
extern int32_t tn_core_tensor_alloc(int32_t dtype_packed, int32_t ndim, void* dims, void* out,
                                    void* out_data);
extern int32_t tn_core_return(void* values, int32_t n, void* out);
extern void tn_core_release(void* any);
#else
static TN_UNUSED uint64_t tn_core_drop(uint64_t* count, uint64_t by) {
#if defined(__GNUC__)
  return __atomic_fetch_sub(count, by, __ATOMIC_ACQ_REL);
#else
  const uint64_t before = *count;
  *count -= by;
  return before;
#endif
}

static TN_UNUSED void tn_core_release(void* any) {
  tn_ffi_any* value = (tn_ffi_any*)any;
  tn_ffi_object* object = value->u.v_obj;
  if (value->type_index >= TN_FFI_OBJECT && object) {
    const uint64_t before = tn_core_drop(&object->combined_ref_count, TN_FFI_REF_STRONG);
    if (before == TN_FFI_REF_NEW) {
      if (object->deleter) object->deleter(object, 3);
    } else if ((before & 0xffffffff) == 1) {
      if (object->deleter) object->deleter(object, 1);
      if (tn_core_drop(&object->combined_ref_count, TN_FFI_REF_WEAK) == TN_FFI_REF_WEAK &&
          object->deleter)
        object->deleter(object, 2);
    }
  }
  memset(value, 0, sizeof *value);
}

/* TVM-FFI reads a pointer to a reclaim function just before an object; null: the deleter frees. */
static TN_UNUSED tn_ffi_object* tn_core_object(size_t bytes, int32_t type_index,
                                               void (*deleter)(void*, int)) {
  char* memory = (char*)tn_core_allocate(bytes + 64, 64);
  if (!memory) return NULL;
  memset(memory, 0, 64);
  tn_ffi_object* object = (tn_ffi_object*)(void*)(memory + 64);
  object->combined_ref_count = TN_FFI_REF_NEW;
  object->type_index = type_index;
  object->padding = 0;
  object->deleter = deleter;
  return object;
}

static TN_UNUSED void tn_core_delete_tensor(void* self, int flags) {
  if (flags & 2) tn_core_free((char*)self - 64);
}

static TN_UNUSED void tn_core_delete_array(void* self, int flags) {
  tn_ffi_array* array = (tn_ffi_array*)self;
  if (flags & 1) {
    for (int64_t i = 0; i < array->size; ++i) tn_core_release(&array->data[i]);
  }
  if (flags & 2) tn_core_free((char*)self - 64);
}

static TN_UNUSED void tn_core_delete_managed(tn_dl_managed_tensor* self) {
  tn_ffi_any owner = {TN_FFI_TENSOR, 0, {0}};
  owner.u.v_obj = (tn_ffi_object*)self->manager_ctx;
  free(self);
  tn_core_release(&owner);
}

static TN_UNUSED tn_ffi_tensor* tn_core_make_tensor(tn_dl_data_type dtype, int32_t ndim,
                                                    const int64_t* shape) {
  uint64_t elements = 1, stride = 1;
  for (int32_t i = 0; i < ndim; ++i) elements *= (uint64_t)shape[i];
  const size_t dims_bytes = (size_t)ndim * sizeof(int64_t);
  const size_t data_at = (sizeof(tn_ffi_tensor) + 2 * dims_bytes + 63) / 64 * 64;
  const size_t bytes = (size_t)((elements * dtype.bits * dtype.lanes + 7) / 8);
  tn_ffi_tensor* tensor =
      (tn_ffi_tensor*)(void*)tn_core_object(data_at + bytes, TN_FFI_TENSOR, tn_core_delete_tensor);
  if (!tensor) return NULL;
  char* base = (char*)tensor;
  int64_t* dims = (int64_t*)(void*)(base + sizeof(tn_ffi_tensor));
  for (int32_t i = ndim - 1; i >= 0; --i) {
    dims[i] = shape[i];
    dims[ndim + i] = (int64_t)stride;
    stride *= shape[i] > 0 ? (uint64_t)shape[i] : 1;
  }
  memset(&tensor->dl_tensor, 0, sizeof tensor->dl_tensor);
  tensor->dl_tensor.data = base + data_at;
  tensor->dl_tensor.device.device_type = TN_DL_CPU;
  tensor->dl_tensor.ndim = ndim;
  tensor->dl_tensor.dtype = dtype;
  tensor->dl_tensor.shape = dims;
  tensor->dl_tensor.strides = dims + ndim;
  return tensor;
}

static TN_UNUSED void tn_core_set_object(void* object, tn_ffi_any* out, void** out_data) {
  static char nothing; /* frameworks give null for an empty tensor */
  const tn_dl_tensor* view = &((tn_ffi_tensor*)object)->dl_tensor;
  out->type_index = ((tn_ffi_object*)object)->type_index;
  out->padding = 0;
  out->u.v_obj = (tn_ffi_object*)object;
  *out_data = view->data ? (char*)view->data + view->byte_offset : &nothing;
}

static TN_UNUSED int32_t tn_core_tensor_alloc(int32_t dtype_packed, int32_t ndim, void* dims,
                                              void* out, void* out_data) {
  int64_t* shape = (int64_t*)dims;
  tn_dl_data_type dtype;
  memcpy(&dtype, &dtype_packed, sizeof dtype);
  memset(out, 0, sizeof(tn_ffi_any));
#if TN_TVM_FFI
  if (TVMFFIEnvTensorAlloc && TVMFFIEnvGetDLPackManagedTensorAllocator &&
      TVMFFIEnvGetDLPackManagedTensorAllocator()) {
    tn_dl_tensor prototype = {NULL, {TN_DL_CPU, 0}, ndim, dtype, shape, NULL, 0};
    void* object = NULL;
    if (TVMFFIEnvTensorAlloc(&prototype, &object) != 0) return -1;
    tn_core_set_object(object, (tn_ffi_any*)out, (void**)out_data);
    return 0;
  }
#endif
  void* object = tn_core_make_tensor(dtype, ndim, shape);
  if (!object) return tn_core_fail("RuntimeError", "out of memory: an output");
#if TN_TVM_FFI
  if (TVMFFITensorFromDLPackVersioned) {
    tn_dl_managed_tensor* managed = (tn_dl_managed_tensor*)calloc(1, sizeof *managed);
    if (!managed) return tn_core_fail("RuntimeError", "out of memory: an output");
    managed->version_major = 1;
    managed->manager_ctx = object;
    managed->deleter = tn_core_delete_managed;
    managed->dl_tensor = ((tn_ffi_tensor*)object)->dl_tensor;
    if (TVMFFITensorFromDLPackVersioned(managed, 0, 0, &object) != 0) {
      tn_core_delete_managed(managed);
      return -1;
    }
  }
#endif
  tn_core_set_object(object, (tn_ffi_any*)out, (void**)out_data);
  return 0;
}

static TN_UNUSED int32_t tn_core_return_array(tn_ffi_any* tensors, int32_t n, tn_ffi_any* result) {
#if TN_TVM_FFI
  if (TVMFFIFunctionGetGlobal && TVMFFIFunctionCall) {
    static const tn_ffi_byte_array name = {"ffi.Array", 9};
    tn_ffi_any make = {TN_FFI_FUNCTION, 0, {0}};
    void* function = NULL;
    if (TVMFFIFunctionGetGlobal(&name, &function) != 0) return -1;
    if (function) {
      const int32_t status = TVMFFIFunctionCall(function, tensors, n, result);
      make.u.v_obj = (tn_ffi_object*)function;
      tn_core_release(&make);
      return status; /* the array holds references of its own */
    }
  }
#endif
  const size_t bytes = (size_t)n * sizeof(tn_ffi_any);
  tn_ffi_array* array = (tn_ffi_array*)(void*)tn_core_object(sizeof(tn_ffi_array) + bytes,
                                                             TN_FFI_ARRAY, tn_core_delete_array);
  if (!array) return tn_core_fail("RuntimeError", "out of memory: the outputs");
  array->data = (tn_ffi_any*)(void*)(array + 1);
  array->size = n;
  array->capacity = n;
  array->data_deleter = NULL;
  memcpy(array->data, tensors, bytes);
  memset(tensors, 0, bytes);
  result->type_index = TN_FFI_ARRAY;
  result->u.v_obj = &array->header;
  return 0;
}

static TN_UNUSED int32_t tn_core_return(void* values, int32_t n, void* out) {
  tn_ffi_any* tensors = (tn_ffi_any*)values;
  tn_ffi_any* result = (tn_ffi_any*)out;
  int32_t status = 0;
  memset(result, 0, sizeof *result);
  if (n == 1) {
    *result = tensors[0];
    memset(&tensors[0], 0, sizeof tensors[0]);
  } else if (n > 1) {
    status = tn_core_return_array(tensors, n, result);
  }
  for (int32_t i = 0; i < n; ++i) tn_core_release(&tensors[i]);
  return status;
}
#endif
