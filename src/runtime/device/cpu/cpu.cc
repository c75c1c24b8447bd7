// The CPU: host memory.
#include <stdlib.h>
#include <string.h>

#include "runtime/core/error.h"
#include "runtime/device/device.h"

namespace tenon::runtime {
namespace {

int32_t Count() { return 1; }

int32_t Allocate(int32_t, int64_t bytes, void** out) {
  // Never an address of nothing: an empty tensor has one too.
  if (posix_memalign(out, 64, bytes > 0 ? static_cast<size_t>(bytes) : 1) == 0) return 0;
  return Fail("MemoryError", "out of memory");
}

void Free(int32_t, void* memory) { free(memory); }

int32_t Copy(int32_t, void* target, const void* source, int64_t bytes) {
  if (bytes > 0) memcpy(target, source, static_cast<size_t>(bytes));
  return 0;
}

}  // namespace

const DeviceDriver cpu_driver = {TN_DL_CPU, "cpu", Count, Allocate, Free, Copy, Copy};

}  // namespace tenon::runtime
