#include "runtime/device/cuda/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <type_traits>

#include "runtime/device/search.h"

namespace tenon::runtime::cuda {
namespace {

constexpr int32_t kMaxDevices = 64;

Library library;
char missing[512];
constinit Search search;

bool BindAll(void* handle) {
#define TN_CU(member, symbol, parameters) #symbol "\0"
  const char* const lacks = BindSymbols(handle, TN_CUDA_FUNCTIONS(TN_CU), &library.init);
#undef TN_CU
  if (lacks) {
    snprintf(missing, sizeof missing, "the CUDA driver has no %s: it is too old", lacks);
    return false;
  }
  auto optional = [handle](auto* member, const char* symbol) {
    *member = reinterpret_cast<std::remove_pointer_t<decltype(member)>>(dlsym(handle, symbol));
  };
#define TN_CU(member, symbol, parameters) optional(&library.member, #symbol);
  TN_CUDA_OPTIONAL(TN_CU)
#undef TN_CU
  library.graphs = library.graph_make && library.graph_free && library.graph_add &&
                   library.graph_attribute && library.graph_instantiate && library.exec_set &&
                   library.exec_launch && library.exec_free && library.capture_info;
  return true;
}

bool Check(const char* function, Result result) {
  if (result == 0) return true;
  const char *name = nullptr, *text = nullptr;
  library.error_name(result, &name);
  library.error_text(result, &text);
  snprintf(missing, sizeof missing, "the CUDA driver cannot be used: %s failed: %s (%s)", function,
           name ? name : "unknown error", text ? text : "");
  return false;
}

bool Load() {
  const char* given = getenv("TENON_CUDA_DRIVER");
  const char* name = given && *given ? given : "libcuda.so.1";
  void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    snprintf(missing, sizeof missing, "NVIDIA's driver is not installed: %s was not found", name);
    return false;
  }
  if (!BindAll(handle) || !Check("cuInit", library.init(0)) ||
      !Check("cuDeviceGetCount", library.device_count(&library.devices))) {
    return false;
  }
  if (library.devices > kMaxDevices) library.devices = kMaxDevices;
  if (library.devices == 0) snprintf(missing, sizeof missing, "the CUDA driver sees no GPU");
  return library.devices > 0;
}

}  // namespace

const Library* Find(const char** out_missing) {
  if (search.Found(Load)) return &library;
  if (out_missing) *out_missing = missing;
  return nullptr;
}

}  // namespace tenon::runtime::cuda
