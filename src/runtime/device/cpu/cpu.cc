// The CPU: host memory.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/core/error.h"
#include "runtime/device/device.h"

namespace tenon::runtime {
namespace {

int32_t Count() { return 1; }

int32_t Allocate(int32_t, int64_t bytes, void** out) {
  // Never an address of nothing: an empty tensor has one too.
  if (posix_memalign(out, 64, bytes > 0 ? static_cast<size_t>(bytes) : 1) == 0) return 0;
  char message[64];
  snprintf(message, sizeof message, "out of memory: %lld bytes were asked for",
           static_cast<long long>(bytes));
  return Fail("MemoryError", message);
}

void Free(int32_t, void* memory) { free(memory); }

int32_t Copy(int32_t, void* target, const void* source, int64_t bytes) {
  if (bytes > 0) memcpy(target, source, static_cast<size_t>(bytes));
  return 0;
}

}  // namespace

// No streams: what is called is done.
const DeviceDriver cpu_driver = {
    .type = TN_DL_CPU,
    .name = "cpu",
    .opaque = false,
    .count = Count,
    .missing = nullptr,
    .describe = nullptr,
    .allocate = Allocate,
    .free = Free,
    .copy_from_host = Copy,
    .copy_to_host = Copy,
    .copy_from_host_async = nullptr,
    .copy_to_host_async = nullptr,
    .copy_between = nullptr,
    .stream_make = nullptr,
    .stream_free = nullptr,
    .stream_wait = nullptr,
    .stream_wait_event = nullptr,
    .event_make = nullptr,
    .event_free = nullptr,
    .event_record = nullptr,
    .event_wait = nullptr,
    .event_elapsed = nullptr,
    .module_load = nullptr,
    .module_free = nullptr,
    .find_function = nullptr,
    .launch = nullptr,
};

}  // namespace tenon::runtime
