// What libtenon_runtime offers to the cores of other libraries in the process.
#include "runtime/services.h"

#include "runtime/core/error.h"
#include "runtime/core/pool.h"
#include "runtime/device/code.h"
#include "runtime/device/run.h"
#include "runtime/device/tensor.h"

extern "C" const tn_host_services tn_runtime_services = {
    TN_ABI_VERSION,
    sizeof(tn_host_services),
    tenon::runtime::RunTeam,
    tenon::runtime::SetLocalError,
    tenon::runtime::LastError,
    tenon::runtime::RunOnDevice,
    tenon::runtime::LaunchDeviceCode,
    tenon::runtime::MakeDeviceTensor,
    tenon::runtime::TakeBytes,
    tenon::runtime::FetchFromDevice,
    tenon::runtime::CopyOnDevice,
    tenon::runtime::MoveToOrFromDevice,
};
TN_NOTE("1", "tn_runtime_services");
