// Weights of a library on devices.
#pragma once

#include "runtime/device/module.h"

namespace tenon::runtime {

/// The weights on the call's device, copied there by whoever comes first; null + error.
LoadedWeights* WeightsOf(const DeviceCall& call);
/// What WeightsOf gave.
void FreeWeights(const DeviceDriver& driver, int32_t device_id, LoadedWeights* weights);

}  // namespace tenon::runtime
