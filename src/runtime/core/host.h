// The runtime whose pool and error slots this copy of the core uses.
#pragma once

#include "tenon/kernel_abi.h"

namespace tenon::runtime {

/// The host's services, or null where this copy serves itself: always in libtenon_runtime
/// (own_host.cc); in a model.so while no libtenon_runtime of this ABI version is in the process
/// (module_host.cc).
const tn_host_services* Host();

}  // namespace tenon::runtime
