// How fast this machine reads memory.
#pragma once

#include <cstdint>

namespace tenon::bench {

/// GB/s of `threads` threads that together read `bytes` bytes once, in order, with the widest
/// loads that there are, when all of it has been read before: of what is larger than the caches,
/// the rate of memory. By the clock on the wall.
double ReadPeak(int64_t bytes, int threads);

}  // namespace tenon::bench
