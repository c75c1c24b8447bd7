#include "runtime/device/arena.h"

#include <stddef.h>
#include <stdlib.h>

#include "runtime/core/error.h"
#include "runtime/core/host.h"
#include "runtime/core/os.h"
#include "runtime/device/device.h"

namespace tenon::runtime {
namespace {

/// One arena; they hang on the state's list under its lock. Two calls on one stream at a time have
/// one each, since their launches may mix.
struct DeviceArena {
  DeviceArena* next;
  tn_dl_device device;
  void* stream;
  void* memory;
  int64_t bytes;
  bool lent;
};

DeviceArena* First(const tn_instances* state) { return static_cast<DeviceArena*>(state->overflow); }

bool Serves(const DeviceArena& arena, tn_dl_device device, const void* stream) {
  return !arena.lent && arena.stream == stream && arena.device.device_type == device.device_type &&
         arena.device.device_id == device.device_id;
}

// An idle arena of the stream, the smallest that is large enough or else any; null where there is
// none.
DeviceArena* FindIdle(const tn_instances* state, tn_dl_device device, const void* stream,
                      int64_t bytes) {
  DeviceArena* best = nullptr;
  for (DeviceArena* a = First(state); a; a = a->next) {
    if (!Serves(*a, device, stream)) continue;
    const bool better = !best || (a->bytes >= bytes ? best->bytes < bytes || a->bytes < best->bytes
                                                    : best->bytes < bytes);
    if (better) best = a;
  }
  return best;
}

// Makes the arena at least as large as asked for; false + error. Freeing waits for the device.
bool Grow(const DeviceDriver& driver, DeviceArena* arena, int64_t bytes) {
  if (arena->bytes >= bytes) return true;
  const int32_t id = arena->device.device_id;
  if (arena->memory) driver.free(id, arena->memory);
  arena->memory = nullptr;
  arena->bytes = -1;
  if (driver.allocate(id, bytes, &arena->memory) != 0) return false;
  arena->bytes = bytes;
  return true;
}

}  // namespace

void* AcquireDeviceArena(tn_instances* state, int32_t device_type, int32_t device_id,
                         int64_t bytes) {
  const tn_dl_device device = {device_type, device_id};
  const DeviceDriver* driver = RequireDevice(device);
  if (!driver) return nullptr;
  void* stream = CurrentStream(device);
  MutexLock guard(&state->lock);
  DeviceArena* arena = FindIdle(state, device, stream, bytes);
  if (!arena) {
    arena = static_cast<DeviceArena*>(malloc(sizeof(DeviceArena)));
    if (!arena) {
      SetError("MemoryError", "out of memory");
      return nullptr;
    }
    *arena = {First(state), device, stream, nullptr, -1, false};
    state->overflow = arena;
  }
  if (!Grow(*driver, arena, bytes)) return nullptr;
  arena->lent = true;
  return arena->memory;
}

}  // namespace tenon::runtime

extern "C" void* tn_core_device_arena_acquire(tn_instances* state, int32_t device_type,
                                              int32_t device_id, int64_t bytes) {
  using namespace tenon::runtime;
  const tn_host_services* host = Host();
  const bool has = host && host->struct_bytes > offsetof(tn_host_services, device_arena_acquire);
  auto acquire = has ? host->device_arena_acquire : AcquireDeviceArena;
  void* arena = acquire(state, device_type, device_id, bytes);
  if (!arena && has) TakeError(host);
  return arena;
}

extern "C" void tn_core_device_arena_release(tn_instances* state, void* arena) {
  using namespace tenon::runtime;
  MutexLock guard(&state->lock);
  for (DeviceArena* a = First(state); a; a = a->next) {
    if (a->memory == arena) a->lent = false;
  }
}
