/* Tenon's C API: load a compiled module, look up a function, call it, make and read tensors. C11
 * and C++.
 *
 * Functions that can fail return 0, or -1 with the thread's error set (tn_last_error); on failure
 * out parameters are left unset. Nothing throws or aborts. Any function may be called from any
 * thread; one module may be used by many threads at once, and so may one function; a tensor being
 * written must not be used by another thread at the same time. */
#ifndef TENON_C_API_H_
#define TENON_C_API_H_

#include "tenon/ffi_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(TN_API)
#elif defined(__GNUC__)
#define TN_API __attribute__((visibility("default")))
#else
#define TN_API
#endif

#define TN_VERSION "0.1.0"

/* The version of the library that is linked, as "0.1.0"; static storage. */
TN_API const char* tn_version(void);

/* The message of this thread's last error, "" where there was none; *out_kind (may be NULL) becomes
 * its kind: "ValueError", "TypeError", "RuntimeError", … Both are valid until the thread's next
 * error. */
TN_API const char* tn_last_error(const char** out_kind);

/* ---- Modules ---- */

typedef struct tn_module tn_module_t;

/* Loads a library that Tenon compiled. The file is checked first: an ELF library, whole, for this
 * architecture, of this ABI version, for CPU features that are here. A file that has been replaced
 * under the same path since an earlier load is loaded anew; one that was written over while its
 * library is loaded is refused. A program that is linked statically cannot load libraries. The
 * caller gives *out_module back with tn_module_free or tn_module_unload. */
TN_API int32_t tn_module_load(const char* path, tn_module_t** out_module);

/* Frees the handle; NULL is allowed. The library's code stays mapped, so functions that came from
 * it remain valid. */
TN_API void tn_module_free(tn_module_t* module);

/* The same, and lets the library go: it is unmapped, with its memory and its idle workers, where
 * nobody else has it open. No function of it may be called from now on; values that a call made
 * (*result of tn_call) must have been released, but tensors that were taken from them may live on.
 * Libraries with device code stay. */
TN_API void tn_module_unload(tn_module_t* module);

/* The name of the module's first function: "main", or what it was compiled as (--name). Belongs to
 * the module. */
TN_API int32_t tn_module_get_name(const tn_module_t* module, const char** out_name);

/* Looks up the exported function `name` ("main", or a kernel's name). Valid until the module is
 * unloaded. */
TN_API int32_t tn_module_get_function(const tn_module_t* module, const char* name,
                                      tn_packed_fn* out_function);

/* What the module says about itself, as JSON text (not NUL-terminated; the keys are described in
 * kernel_abi.h). The text belongs to the module's library. */
TN_API int32_t tn_module_get_info(const tn_module_t* module, const char** out_json,
                                  uint64_t* out_bytes);

/* An input or output of the module's first function. Strings and dims belong to the module. */
typedef struct tn_parameter {
  const char* name;
  tn_dl_data_type dtype;
  int32_t ndim;         /* -1: of an input, no tensor but a number, passed by value; of a network's
                           value, its shape is only known to the call, or it is no tensor */
  const int64_t* shape; /* -1 where the dim is symbolic */
  const char* const* dims; /* the symbolic dim's name or expression, NULL where it is a number */
} tn_parameter_t;

TN_API int32_t tn_module_num_inputs(const tn_module_t* module);
TN_API int32_t tn_module_num_outputs(const tn_module_t* module);
/* index is in 0..num_inputs, resp. 0..num_outputs. */
TN_API int32_t tn_module_get_input(const tn_module_t* module, int32_t index, tn_parameter_t* out);
TN_API int32_t tn_module_get_output(const tn_module_t* module, int32_t index, tn_parameter_t* out);

/* The value of `key` in the model's metadata, NUL-terminated, owned by the module; an error where
 * there is none. */
TN_API int32_t tn_module_get_metadata(const tn_module_t* module, const char* key,
                                      const char** out_value);

/* Makes `instances` idle instances of the module with arenas of arena_bytes each (0: the size that
 * the module states for its largest dims; nothing where these have no end), so that this many calls
 * can run at the same time without allocating. */
TN_API int32_t tn_module_reserve(const tn_module_t* module, int32_t instances, int64_t arena_bytes);

/* Bounds the memory on each device that calls of the module's functions work in; weights do not
 * count. 0: no bound. A call that wants more waits, on the device, until another one's is free; a
 * MemoryError says that no call's is large enough. */
TN_API int32_t tn_module_limit_memory(const tn_module_t* module, int64_t bytes);
/* Gives back the memory on devices that no call works in and no captured graph holds, after the
 * work that still uses it. */
TN_API int32_t tn_module_trim(const tn_module_t* module);

/* ---- Calls ---- */

/* Zero-initialise, set struct_bytes, then what is wanted. A call that is over its time, or that is
 * told to stop, ends between two kernels or inside of one (calling.md) with a RuntimeError; outputs
 * of the caller are then unspecified, and the function can be called again. */
typedef struct tn_call_options {
  uint32_t struct_bytes;   /* sizeof(tn_call_options_t) */
  int32_t max_team;        /* at most this many threads for this call; 0: no bound but the pool's */
  int64_t max_nanoseconds; /* the time that the call may take; 0: no bound */
  int64_t max_bytes;       /* the host memory that it may ask for, working memory and outputs; 0: no
                              bound.       A MemoryError says that it wanted more. */
  const int32_t* stop;     /* may be NULL; once another thread sets *stop to anything but 0 (best
                              atomically) the call ends */
  void* workspace; /* of a function for a device: memory there that the call works in, in the
                      place of memory of the module's; aligned to 64 bytes, and the call's
                      until its work is done; NULL: the module's */
  int64_t workspace_bytes;
  int64_t* out_workspace_bytes; /* may be NULL; else the call only says how many bytes of workspace
                                   it wants with these arguments, and launches nothing */
} tn_call_options_t;

/* Calls an exported function: args are its inputs, then either nothing (the outputs come back in
 * *result: None, a tensor, or an array of tensors) or all its outputs (they are written into, and
 * *result becomes None). options may be NULL, and then this is the same as function(NULL, args,
 * num_args, result). The caller releases *result with tn_value_release. */
TN_API int32_t tn_call(tn_packed_fn function, const tn_call_options_t* options,
                       const tn_ffi_any* args, int32_t num_args, tn_ffi_any* result);

/* Drops the reference a value holds, if it holds one, and makes it None. */
TN_API void tn_value_release(tn_ffi_any* value);

/* ---- Tensors ----
 * A tn_tensor_t is a counted reference to a TVM-FFI tensor object, so that one from a call's result
 * is one too. */

typedef tn_ffi_tensor tn_tensor_t;

/* A new compact row-major tensor with memory of its own on `device`, contents unspecified. */
TN_API int32_t tn_tensor_make(tn_dl_data_type dtype, int32_t ndim, const int64_t* shape,
                              tn_dl_device device, tn_tensor_t** out_tensor);

/* A compact row-major tensor over memory that the caller owns and keeps until the last reference is
 * gone. No copy. */
TN_API int32_t tn_tensor_wrap(void* data, tn_dl_data_type dtype, int32_t ndim, const int64_t* shape,
                              tn_dl_device device, tn_tensor_t** out_tensor);

/* A tensor over a DLPack tensor, which it takes over (its deleter is called with the last
 * reference) unless this fails. No copy; strides are kept. */
TN_API int32_t tn_tensor_from_dlpack(tn_dl_managed_tensor* managed, tn_tensor_t** out_tensor);

/* One reference more; one less (NULL is allowed). */
TN_API void tn_tensor_retain(tn_tensor_t* tensor);
TN_API void tn_tensor_free(tn_tensor_t* tensor);

/* The bytes that the tensor's elements take when compact. */
TN_API int64_t tn_tensor_bytes(const tn_tensor_t* tensor);

/* Copies exactly tn_tensor_bytes between host memory and a compact tensor on any device; when they
 * return, the copy is done. Errors: another size, strides that are not compact. */
TN_API int32_t tn_tensor_copy_from_bytes(tn_tensor_t* tensor, const void* source, int64_t bytes);
TN_API int32_t tn_tensor_copy_to_bytes(const tn_tensor_t* tensor, void* target, int64_t bytes);

/* Copies a compact tensor into another of as many bytes, on any devices of one kind or with the CPU
 * on one side. Where the CPU takes part the copy is done on return; else it is queued on the
 * thread's stream of the target's device. */
TN_API int32_t tn_tensor_copy(tn_tensor_t* target, const tn_tensor_t* source);

/* ---- Devices ---- */

/* How many devices of this type (TN_DL_CPU, …) this runtime can use here; 0 for types that it does
 * not know. */
TN_API int32_t tn_device_count(int32_t device_type);

/* A device's model and driver as text with a 0 at its end, cut where `bytes` are not enough:
 * "NVIDIA H200, 132 multiprocessors, CUDA 12.8". Of devices of which nothing is known (the CPU)
 * their name. Errors: there is no such device. */
TN_API int32_t tn_device_describe(tn_dl_device device, char* out, int64_t bytes);

/* ---- Streams ----
 * Work on a GPU is queued on streams. They are the vendor's own handles, so that any stream of the
 * caller's can be used (on CUDA a CUstream, which a cudaStream_t is); NULL is the device's default
 * stream, on CUDA the legacy one. Devices without streams (the CPU) are an error. */

/* A new stream of a device that does not wait for the default one; freed with tn_stream_free, which
 * takes NULL. */
TN_API int32_t tn_stream_make(tn_dl_device device, void** out_stream);
TN_API int32_t tn_stream_free(tn_dl_device device, void* stream);

/* Returns when all that is queued on the stream is done; errors of that work are reported here. */
TN_API int32_t tn_stream_wait(tn_dl_device device, void* stream);

/* Sets the stream that this thread's work on the device is queued on from now on: copies, and calls
 * of compiled functions. NULL: none is set, and the work goes to TVM-FFI's current stream where
 * that library is in the process (PyTorch's, when it is called from there), else to the default
 * stream. *out_before (may be NULL) becomes what was set. tn_stream_get says where the work goes.
 */
TN_API int32_t tn_stream_set(tn_dl_device device, void* stream, void** out_before);
TN_API int32_t tn_stream_get(tn_dl_device device, void** out_stream);

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif /* TENON_C_API_H_ */
