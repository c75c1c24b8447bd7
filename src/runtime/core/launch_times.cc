// What the launches of a library take that was compiled to tell (tn_core_launch_took). In an object
// of its own: other libraries leave it in the archive.
#include <time.h>

#include "tenon/kernel_abi.h"

namespace {

constexpr int64_t kPerSecond = 1000000000;

}  // namespace

extern "C" int64_t tn_core_now(void) {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kPerSecond + now.tv_nsec;
}

extern "C" void tn_core_launch_took(int64_t* table, int64_t row, int64_t begin) {
  const int64_t took = tn_core_now() - begin;
  __atomic_fetch_add(&table[2 * row], 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&table[2 * row + 1], took, __ATOMIC_RELAXED);
}

extern "C" void tn_core_launch_times(const int64_t* table, int64_t* into, int64_t rows) {
  for (int64_t i = 0; i < 2 * rows; ++i) into[i] = __atomic_load_n(&table[i], __ATOMIC_RELAXED);
}
