#include "loop/launch_order.h"

#include <algorithm>
#include <string>
#include <vector>

#include "loop/threads.h"

namespace tenon {

bool AwaitsAll(const PrimFunc& kernel, const Launch& launch, const PrimFunc& host) {
  const auto names = kernel.attrs.Get<std::vector<std::string>>(kAwaitsAttr, {});
  for (size_t i = 0; i < launch.buffers.size(); ++i) {
    const std::string& name = kernel.buffers[i]->name;
    const bool awaited = std::find(names.begin(), names.end(), name) != names.end();
    const Buffer& given = launch.buffers[i]->buffer;
    const bool is_param =
        std::find(host.buffers.begin(), host.buffers.end(), given) != host.buffers.end();
    if (!awaited && !is_param && given->scope != Scope::kConst) return false;
  }
  return true;
}

}  // namespace tenon
