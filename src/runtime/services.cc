// What libtenon_runtime.so offers to the cores of other libraries in the process.
#include "runtime/services.h"

#include "runtime/core/error.h"
#include "runtime/core/pool.h"
#include "runtime/device/arena.h"
#include "runtime/device/code.h"
#include "runtime/device/tensor.h"
#include "runtime/device/weights.h"

extern "C" __attribute__((visibility("default"))) const tn_host_services tn_host_services_v2 = {
    TN_ABI_VERSION,
    sizeof(tn_host_services),
    tenon::runtime::RunTeam,
    tenon::runtime::SetLocalError,
    tenon::runtime::LastLocalError,
    tenon::runtime::LaunchDeviceCode,
    tenon::runtime::MakeDeviceTensor,
    tenon::runtime::AcquireDeviceArena,
    tenon::runtime::DeviceWeights,
};
