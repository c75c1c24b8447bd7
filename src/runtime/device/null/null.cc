// A device without hardware: it hands out addresses that are never touched, drops what is copied to
// it and reads as zeros; of launches it keeps a record. It lets everything that treats devices
// alike be tested on any machine.
#include "runtime/device/null/null.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>

#include "runtime/core/error.h"

namespace tenon::runtime {
namespace {

constexpr uintptr_t kFirstAddress =
    uintptr_t{1} << 46;  // below the kernel's half, above what mmap gives by default
constexpr uintptr_t kAlignment = 256;
constexpr int64_t kLaunches = 64;

std::atomic<uintptr_t> next_address{kFirstAddress};
std::atomic<int64_t> launch_count;
NullLaunch launches[kLaunches];

// A module's code is a text that names its functions; a function is a copy of its name.
struct NullModule {
  int64_t bytes;
};

int32_t Count() { return 1; }

int32_t Allocate(int32_t, int64_t bytes, void** out) {
  uintptr_t size = (static_cast<uintptr_t>(bytes) + kAlignment) / kAlignment * kAlignment;
  const uintptr_t address = next_address.fetch_add(size, std::memory_order_relaxed);
  *out = reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): only a number
  return 0;
}

void Free(int32_t, void*) {}

int32_t CopyFromHost(int32_t, void*, const void*, int64_t) { return 0; }
int32_t CopyFromHostAsync(int32_t, void*, const void*, int64_t, void*) { return 0; }

int32_t CopyToHost(int32_t, void* target, const void*, int64_t bytes) {
  if (bytes > 0) memset(target, 0, static_cast<size_t>(bytes));
  return 0;
}

int32_t CopyToHostAsync(int32_t id, void* target, const void* source, int64_t bytes, void*) {
  return CopyToHost(id, target, source, bytes);
}

int32_t CopyBetween(int32_t, void*, int32_t, const void*, int64_t, void*) { return 0; }

int32_t MakeHandle(int32_t id, void** out) { return Allocate(id, 1, out); }
int32_t DropHandle(int32_t, void*) { return 0; }
int32_t TwoHandles(int32_t, void*, void*) { return 0; }

int32_t EventElapsed(int32_t, void*, void*, float* out_milliseconds) {
  *out_milliseconds = 0;
  return 0;
}

int32_t LoadModule(int32_t, const void* code, int64_t bytes, void** out) {
  auto* module = static_cast<NullModule*>(malloc(sizeof(NullModule) + static_cast<size_t>(bytes)));
  if (!module) return Fail("MemoryError", "out of memory");
  module->bytes = bytes;
  memcpy(module + 1, code, static_cast<size_t>(bytes));
  *out = module;
  return 0;
}

int32_t FreeModule(int32_t, void* module) {
  free(module);
  return 0;
}

int32_t FindFunction(int32_t, void* handle, const char* name, uint32_t, void** out) {
  auto* module = static_cast<NullModule*>(handle);
  const auto* text = reinterpret_cast<const char*>(module + 1);
  const size_t length = strlen(name);
  const void* found = memmem(text, static_cast<size_t>(module->bytes), name, length);
  if (found) {
    *out = const_cast<void*>(found);
    return 0;
  }
  char message[256];
  snprintf(message, sizeof message, "no kernel '%s' in the module", name);
  return Fail("RuntimeError", message);
}

int32_t Launch(int32_t, const DeviceLaunch& launch) {
  const int64_t number = launch_count.fetch_add(1, std::memory_order_relaxed);
  NullLaunch& record = launches[number % kLaunches];
  memset(&record, 0, sizeof record);
  strncpy(record.name, launch.name, sizeof record.name - 1);
  memcpy(record.grid, launch.grid, sizeof record.grid);
  memcpy(record.block, launch.block, sizeof record.block);
  memcpy(record.cluster, launch.cluster, sizeof record.cluster);
  record.attributes = launch.attributes;
  record.shared_bytes = launch.shared_bytes;
  record.stream = launch.stream;
  record.first_arg = launch.args ? *static_cast<void**>(launch.args[0]) : nullptr;
  return 0;
}

}  // namespace

int64_t NullLaunchCount() { return launch_count.load(std::memory_order_relaxed); }

const NullLaunch* NullLaunchAt(int64_t number) {
  const int64_t count = NullLaunchCount();
  const bool kept = number >= 0 && number < count && number + kLaunches >= count;
  return kept ? &launches[number % kLaunches] : nullptr;
}

const DeviceDriver null_driver = {
    .type = TN_DL_NULL,
    .name = "null",
    .opaque = false,
    .count = Count,
    .missing = nullptr,
    .describe = nullptr,
    .allocate = Allocate,
    .free = Free,
    .copy_from_host = CopyFromHost,
    .copy_to_host = CopyToHost,
    .copy_from_host_async = CopyFromHostAsync,
    .copy_to_host_async = CopyToHostAsync,
    .copy_between = CopyBetween,
    .stream_make = MakeHandle,
    .stream_free = DropHandle,
    .stream_wait = DropHandle,
    .stream_wait_event = TwoHandles,
    .event_make = MakeHandle,
    .event_free = DropHandle,
    .event_record = TwoHandles,
    .event_wait = DropHandle,
    .event_elapsed = EventElapsed,
    .module_load = LoadModule,
    .module_free = FreeModule,
    .find_function = FindFunction,
    .launch = Launch,
};

}  // namespace tenon::runtime
