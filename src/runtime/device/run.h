// Calls of host functions for devices.
#pragma once

#include "tenon/kernel_abi.h"

namespace tenon::runtime {

/// tn_core_device_run with the drivers of this copy of the runtime.
int32_t RunOnDevice(const tn_device_call* given, void** closure);

/// Gives back what the library has on devices; nothing while calls are under way. A later call
/// begins anew.
void LeaveDevices(tn_device_state* state);
/// tn_module_limit_memory and tn_module_trim.
int32_t LimitDevices(const tn_device_code* code, tn_device_state* state, int64_t bytes);
void TrimDevices(tn_device_state* state);

}  // namespace tenon::runtime
