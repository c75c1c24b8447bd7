// The query symbol's parts that other files of the core implement.
#pragma once

#include "tenon/kernel_abi.h"

namespace tenon::runtime {

/// See tn_module_info.
void Adopt(const tn_host_services* host);
int32_t ReserveInstances(tn_instances* state, int32_t count, int64_t bytes);

/// Unmaps the arenas that no call has, of all functions of the library.
void FreeIdleArenas();

}  // namespace tenon::runtime
