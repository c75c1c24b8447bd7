#include "runtime/device/opencl/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/device/search.h"

namespace tenon::runtime::opencl {
namespace {

constexpr uint32_t kMaxPlatforms = 16;
constexpr Result kNoPlatforms = -1001;  // of the loader

Library library;
char missing[512];
constinit Search search;

bool BindAll(void* handle) {
#define TN_CL(result, member, symbol, parameters) #symbol "\0"
  const char* const lacks = BindSymbols(handle, TN_OPENCL_FUNCTIONS(TN_CL), &library.platforms);
#undef TN_CL
  if (!lacks) return true;
  snprintf(missing, sizeof missing, "the OpenCL loader has no %s: it is older than 1.2", lacks);
  return false;
}

bool Says(Handle device, uint32_t what) {
  uint32_t yes = 0;
  return library.device_info(device, what, sizeof yes, &yes, nullptr) == 0 && yes != 0;
}

void AddDevices(Handle platform) {
  Handle found[kMaxDevices];
  uint32_t count = 0;
  if (library.devices(platform, kAllDevices, kMaxDevices, found, &count) != 0) return;
  for (uint32_t i = 0; i < count && i < kMaxDevices; ++i) {
    const bool usable =
        Says(found[i], kDeviceAvailable) && Says(found[i], kDeviceCompilerAvailable);
    if (usable && library.num_devices < kMaxDevices)
      library.device[library.num_devices++] = found[i];
  }
}

bool Load() {
  const char* given = getenv("TENON_OPENCL_LOADER");
  const char* name = given && *given ? given : "libOpenCL.so.1";
  void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    snprintf(missing, sizeof missing, "OpenCL is not installed: %s was not found", name);
    return false;
  }
  if (!BindAll(handle)) return false;
  Handle platforms[kMaxPlatforms];
  uint32_t count = 0;
  const Result result = library.platforms(kMaxPlatforms, platforms, &count);
  if (result != 0 && result != kNoPlatforms) {
    snprintf(missing, sizeof missing, "OpenCL cannot be used: clGetPlatformIDs failed: error %d",
             result);
    return false;
  }
  for (uint32_t i = 0; i < count && i < kMaxPlatforms; ++i) AddDevices(platforms[i]);
  if (library.num_devices > 0) return true;
  snprintf(missing, sizeof missing,
           count == 0 ? "no OpenCL driver is installed (/etc/OpenCL/vendors)"
                      : "the OpenCL drivers see no device that can build programs");
  return false;
}

}  // namespace

const Library* Find(const char** out_missing) {
  if (search.Found(Load)) return &library;
  if (out_missing) *out_missing = missing;
  return nullptr;
}

}  // namespace tenon::runtime::opencl
