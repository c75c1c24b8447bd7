// Libraries that may or may not be in the process, and may come later: TVM-FFI, and the host's
// libtenon_runtime.
#pragma once

#include <atomic>
#include <cstdint>

#include "tenon/ffi_types.h"

namespace tenon::runtime {

/// A library known by the end of its file name. Zero-initialised apart from the names; usable from
/// any thread.
struct ForeignLibrary {
  const char* base_name;               // "libtvm_ffi.so"; suffixes such as ".1" are accepted
  const char* probe;                   // a symbol that it exports, to find it in the global scope
  std::atomic<void*> handle{nullptr};  // of dlopen, once found
  std::atomic<uint64_t> missed_at{
      0};  // 1 + the count of libraries ever loaded when it was last looked for in vain
};

/// The symbol's address: from the global scope, else from the library where it was loaded
/// privately; null where the library is not there (yet). It looks again only after further
/// libraries have been loaded.
void* FindForeign(ForeignLibrary* library, const char* symbol);

/// The TVMFFI… functions the core uses. Each is null where the TVM-FFI in the process lacks it.
struct TvmFfi {
  void (*error_set_raised_from_c_str)(const char* kind, const char* message);
  int (*env_tensor_alloc)(tn_dl_tensor* prototype, void** out);
  void* (*env_get_allocator)();
  void* (*env_get_stream)(int32_t device_type, int32_t device_id);
  int (*tensor_from_dlpack_versioned)(tn_dl_managed_tensor* from, int32_t require_alignment,
                                      int32_t require_contiguous, void** out);
  int (*function_get_global)(const tn_ffi_byte_array* name, void** out);
  int (*function_call)(void* function, tn_ffi_any* args, int32_t num_args, tn_ffi_any* result);
};

/// TVM-FFI's functions, or null while it is not in the process.
const TvmFfi* FindTvmFfi();

}  // namespace tenon::runtime
