#include "runtime/core/foreign.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "runtime/core/os.h"

namespace tenon::runtime {
namespace {

// dlopen's handle for "found in the global scope": dlsym takes RTLD_DEFAULT, which is null, for it.
char global_scope;

constexpr size_t kPathBytes = 4096;

struct Search {
  const char* base_name;
  uint64_t loads;  // libraries ever loaded
  char path[kPathBytes];
};

int CountLoads(dl_phdr_info* info, size_t, void* loads) {
  *static_cast<uint64_t*>(loads) = info->dlpi_adds;
  return 1;
}

int MatchName(dl_phdr_info* info, size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  const char* slash = strrchr(info->dlpi_name, '/');
  const char* base = slash ? slash + 1 : info->dlpi_name;
  size_t length = strlen(search->base_name);
  if (strncmp(base, search->base_name, length) != 0) return 0;
  if (base[length] != '\0' && base[length] != '.') return 0;
  if (strlen(info->dlpi_name) >= kPathBytes) return 0;
  strcpy(search->path, info->dlpi_name);
  return 1;
}

void* OpenIfLoaded(const ForeignLibrary& library) {
  if (dlsym(RTLD_DEFAULT, library.probe)) return &global_scope;
  Search search;
  search.base_name = library.base_name;
  search.path[0] = '\0';
  dl_iterate_phdr(MatchName, &search);
  if (search.path[0] == '\0') return nullptr;
  return dlopen(search.path, RTLD_LAZY | RTLD_NOLOAD);
}

void* Handle(ForeignLibrary* library) {
  void* handle = library->handle.load(std::memory_order_acquire);
  if (handle) return handle;
  uint64_t loads = 0;
  dl_iterate_phdr(CountLoads, &loads);
  if (library->missed_at.load(std::memory_order_relaxed) == loads + 1) return nullptr;
  handle = OpenIfLoaded(*library);
  if (handle) {
    library->handle.store(handle, std::memory_order_release);
  } else {
    library->missed_at.store(loads + 1, std::memory_order_relaxed);
  }
  return handle;
}

template <class F>
void Bind(ForeignLibrary* library, const char* symbol, F* out) {
  *out = reinterpret_cast<F>(FindForeign(library, symbol));
}

ForeignLibrary tvm_ffi_library{"libtvm_ffi.so", "TVMFFIErrorSetRaisedFromCStr"};
TvmFfi tvm_ffi;
std::atomic<uint32_t> tvm_ffi_bound;
uint32_t tvm_ffi_lock;

}  // namespace

void* FindForeign(ForeignLibrary* library, const char* symbol) {
  void* handle = Handle(library);
  if (!handle) return nullptr;
  return dlsym(handle == &global_scope ? RTLD_DEFAULT : handle, symbol);
}

const TvmFfi* FindTvmFfi() {
  if (tvm_ffi_bound.load(std::memory_order_acquire)) return &tvm_ffi;
  if (!Handle(&tvm_ffi_library)) return nullptr;
  MutexLock lock(&tvm_ffi_lock);
  if (tvm_ffi_bound.load(std::memory_order_relaxed)) return &tvm_ffi;
  ForeignLibrary* library = &tvm_ffi_library;
  Bind(library, "TVMFFIErrorSetRaisedFromCStr", &tvm_ffi.error_set_raised_from_c_str);
  Bind(library, "TVMFFIEnvTensorAlloc", &tvm_ffi.env_tensor_alloc);
  Bind(library, "TVMFFIEnvGetStream", &tvm_ffi.env_get_stream);
  Bind(library, "TVMFFIEnvGetDLPackManagedTensorAllocator", &tvm_ffi.env_get_allocator);
  Bind(library, "TVMFFITensorFromDLPackVersioned", &tvm_ffi.tensor_from_dlpack_versioned);
  Bind(library, "TVMFFIFunctionGetGlobal", &tvm_ffi.function_get_global);
  Bind(library, "TVMFFIFunctionCall", &tvm_ffi.function_call);
  tvm_ffi_bound.store(1, std::memory_order_release);
  return &tvm_ffi;
}

}  // namespace tenon::runtime
