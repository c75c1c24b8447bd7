// A library's device code: loaded once per device, at the first launch there, and launched.
#pragma once

#include "tenon/kernel_abi.h"

namespace tenon::runtime {

/// tn_core_device_launch with the drivers of this copy of the runtime.
int32_t LaunchDeviceCode(const tn_device_code* code, tn_device_state* state, int32_t kernel,
                         int32_t device_id, const int64_t* extents, void** args);

}  // namespace tenon::runtime
