// A device without hardware: it hands out addresses that are never touched, drops what is copied to
// it and reads as zeros. It lets everything that treats devices alike be tested on any machine.
#include <string.h>

#include <atomic>

#include "runtime/device/device.h"

namespace tenon::runtime {
namespace {

constexpr uintptr_t kFirstAddress =
    uintptr_t{1} << 46;  // below the kernel's half, above what mmap gives by default
constexpr uintptr_t kAlignment = 256;

int32_t Count() { return 1; }

int32_t Allocate(int32_t, int64_t bytes, void** out) {
  static std::atomic<uintptr_t> next{kFirstAddress};
  uintptr_t size = (static_cast<uintptr_t>(bytes) + kAlignment) / kAlignment * kAlignment;
  *out = reinterpret_cast<void*>(next.fetch_add(size, std::memory_order_relaxed));
  return 0;
}

void Free(int32_t, void*) {}

int32_t CopyFromHost(int32_t, void*, const void*, int64_t) { return 0; }

int32_t CopyToHost(int32_t, void* target, const void*, int64_t bytes) {
  if (bytes > 0) memset(target, 0, static_cast<size_t>(bytes));
  return 0;
}

}  // namespace

const DeviceDriver null_driver = {TN_DL_NULL, "null",       Count,     Allocate,
                                  Free,       CopyFromHost, CopyToHost};

}  // namespace tenon::runtime
