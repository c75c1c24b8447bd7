#include "driver/foreign.h"

#include <dlfcn.h>

#include <filesystem>

#include "tenon/kernel_abi.h"

namespace tenon::driver {

std::string InfoOfForeign(const std::string& path) {
  // A name without a slash would be searched for elsewhere.
  void* handle = dlopen(std::filesystem::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL);
  auto query = handle ? reinterpret_cast<tn_query_fn>(dlsym(handle, TN_QUERY_SYMBOL)) : nullptr;
  if (!query) return "";
  const tn_module_info* info = query();
  return {info->info_json, static_cast<size_t>(*info->info_bytes)};
}

}  // namespace tenon::driver
