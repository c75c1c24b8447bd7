// Host() for libtenon_runtime, which is the host.
#include "runtime/core/host.h"

namespace tenon::runtime {

const tn_host_services* Host() { return nullptr; }

}  // namespace tenon::runtime
