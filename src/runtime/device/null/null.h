// What the null device was asked for, for tests of everything above it.
#pragma once

#include "runtime/device/device.h"

namespace tenon::runtime {

/// A launch as the null device saw it.
struct NullLaunch {
  char name[64];  // cut
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t cluster[3];
  uint32_t attributes;
  uint32_t shared_bytes;
  void* stream;
  void* first_arg;  // what args[0] points to, where there are any
};

/// Launches since the process began.
int64_t NullLaunchCount();
/// Of the last 64, the one with this number; null for others. Not while other threads launch.
const NullLaunch* NullLaunchAt(int64_t number);

}  // namespace tenon::runtime
