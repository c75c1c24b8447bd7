#include "runtime/device/weights.h"

#include <stddef.h>
#include <stdlib.h>

#include <atomic>

#include "runtime/core/error.h"
#include "runtime/core/host.h"
#include "runtime/core/os.h"
#include "runtime/device/device.h"

namespace tenon::runtime {
namespace {

static_assert(sizeof(tn_device_weights_state) == TN_DEVICE_WEIGHTS_STATE_BYTES);

// All or nothing; null + error.
void** Upload(const DeviceDriver& driver, const tn_device_weights* table, const unsigned char* base,
              int32_t id) {
  const auto* rows = reinterpret_cast<const tn_device_weight*>(table + 1);
  auto** memory = static_cast<void**>(calloc(table->count + size_t{1}, sizeof(void*)));
  if (!memory) {
    SetError("MemoryError", "out of memory");
    return nullptr;
  }
  for (uint32_t i = 0; i < table->count; ++i) {
    const auto bytes = static_cast<int64_t>(rows[i].bytes);
    if (driver.allocate(id, bytes, &memory[i]) == 0 &&
        driver.copy_from_host(id, memory[i], base + rows[i].offset, bytes) == 0) {
      continue;
    }
    for (uint32_t k = 0; k <= i; ++k) {
      if (memory[k]) driver.free(id, memory[k]);
    }
    free(memory);
    return nullptr;
  }
  return memory;
}

}  // namespace

void** DeviceWeights(const tn_device_weights* table, tn_device_weights_state* state,
                     const unsigned char* base, int32_t device_type, int32_t device_id) {
  const DeviceDriver* driver = RequireDevice({device_type, device_id});
  if (!driver) return nullptr;
  if (device_id >= TN_MAX_DEVICES) {
    SetError("ValueError", "the device's number is too large");
    return nullptr;
  }
  std::atomic_ref<void**> slot(state->memory[device_id]);
  void** there = slot.load(std::memory_order_acquire);
  if (there) return there;
  MutexLock guard(&state->lock);
  there = slot.load(std::memory_order_relaxed);
  if (there) return there;
  there = Upload(*driver, table, base, device_id);
  if (there) state->uploads += table->count;
  slot.store(there, std::memory_order_release);
  return there;
}

}  // namespace tenon::runtime

extern "C" void** tn_core_device_weights(const tn_device_weights* table,
                                         tn_device_weights_state* state, const unsigned char* base,
                                         int32_t device_type, int32_t device_id) {
  using namespace tenon::runtime;
  const tn_host_services* host = Host();
  const bool has = host && host->struct_bytes > offsetof(tn_host_services, device_weights);
  auto get = has ? host->device_weights : DeviceWeights;
  void** weights = get(table, state, base, device_type, device_id);
  if (!weights && has) TakeError(host);
  return weights;
}
