// Whose workers, devices and error slots this copy of the core uses besides its own. In
// libtenon_runtime (own_host.cc) there is nobody else; the core in a library or an object
// (module_host.cc) looks once, at the first need, and keeps what it found mapped.
#pragma once

#include "tenon/kernel_abi.h"

namespace tenon::runtime {

/// The runtime's in this process, that of the same program or library before others; null where
/// there is none.
const tn_host_services* Host();

/// The services of whoever has the workers: Host(), else the core that was loaded first; null where
/// that is this one.
const tn_host_services* TeamHost();

/// Whether the thread's call may have so many bytes more (CallLimits).
bool MayTake(int64_t bytes);

/// Sets the error of this thread in every slot where somebody else may look for it.
void TellError(const char* kind, const char* message);

/// Makes the error of this thread in a host's slot this copy's own too, after a service has failed.
void TakeError(const tn_host_services* host);

}  // namespace tenon::runtime
