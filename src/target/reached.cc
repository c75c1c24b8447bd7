#include "target/reached.h"

#include "tenon/devices.h"

namespace tenon {

namespace {

// DLPack's numbers; nothing else is known of the second.
constexpr int64_t kCudaHost = TN_DEVICE_cuda_host, kCudaManaged = 13;
constexpr int64_t kOfCuda[] = {kCudaHost, kCudaManaged};

}  // namespace

std::span<const int64_t> ReachedBy(int64_t device_type) {
  if (device_type == TN_DEVICE_cuda) return kOfCuda;
  return {};
}

}  // namespace tenon
