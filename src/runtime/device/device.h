// What the runtime asks of a kind of device. One table of functions per kind, in a folder of its
// own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tenon/ffi_types.h"

namespace tenon::runtime {

/// Functions return 0, or -1 with the thread's error set. `id` counts from 0 to Count(); memory is
/// what Allocate of the same device gave, at any offset.
struct DeviceDriver {
  int32_t type;  // DLDeviceType
  const char* name;
  int32_t (*count)();
  int32_t (*allocate)(int32_t id, int64_t bytes, void** out);  // aligned to 64 bytes at least
  void (*free)(int32_t id, void* memory);
  int32_t (*copy_from_host)(int32_t id, void* target, const void* source, int64_t bytes);
  int32_t (*copy_to_host)(int32_t id, void* target, const void* source, int64_t bytes);
};

/// The driver of a device type, or null.
const DeviceDriver* FindDriver(int32_t type);
/// The driver of a device that exists; null + error otherwise.
const DeviceDriver* RequireDevice(tn_dl_device device);

extern const DeviceDriver cpu_driver;
extern const DeviceDriver null_driver;

}  // namespace tenon::runtime
