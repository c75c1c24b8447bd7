// Working memory of calls on a device.
#pragma once

#include "tenon/kernel_abi.h"

namespace tenon::runtime {

/// tn_core_device_arena_acquire with the drivers of this copy of the runtime.
void* AcquireDeviceArena(tn_instances* state, int32_t device_type, int32_t device_id,
                         int64_t bytes);

}  // namespace tenon::runtime
