// Weights of a library on devices.
#pragma once

#include "tenon/kernel_abi.h"

namespace tenon::runtime {

/// tn_core_device_weights with the drivers of this copy of the runtime.
void** DeviceWeights(const tn_device_weights* table, tn_device_weights_state* state,
                     const unsigned char* base, int32_t device_type, int32_t device_id);

}  // namespace tenon::runtime
