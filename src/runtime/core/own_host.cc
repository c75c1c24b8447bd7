// libtenon_runtime, which is the host.
#include "runtime/core/host.h"
#include "runtime/core/pool.h"

namespace tenon::runtime {

const tn_host_services* Host() { return nullptr; }
const tn_host_services* TeamHost() { return nullptr; }
bool MayTake(int64_t bytes) { return TakeBytes(bytes) == 0; }
void TellError(const char*, const char*) {}
void TakeError(const tn_host_services*) {}

#if TENON_UNLOADS
namespace {
// The plugin that it is part of may be unmapped.
__attribute__((destructor)) void Unload() { EndWorkers(); }
}  // namespace
#endif

}  // namespace tenon::runtime

extern "C" int32_t tn_core_run_team(tn_body_fn body, void* closure, int32_t max_team) {
  return tenon::runtime::RunTeam(body, closure, max_team);
}
