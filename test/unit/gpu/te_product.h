// Products on tensor cores as schedules of tensors, by the public headers alone, whose names are
// also those of what is inside.
#pragma once

#include <cstdint>
#include <string>

namespace tenon::test {

inline constexpr int64_t kRows = 32, kColumns = 16, kDepth = 32;  // of a block of two warps

struct Sizes {
  int64_t m, n, k;
};
/// Tiles by asynchronous copies, used at once or pipelined; or by copies with zeros around,
/// pipelined.
enum class Way : uint8_t { kPlain, kPipelined, kPadded };

/// The loop IR of f: C = A B in f16, summed in f32, by mma.sync. Throws tenon::Error.
std::string ProductOfTensors(const Sizes& size, Way way);
/// The same by a warpgroup, for which the copy engine fetches tiles ahead: m and n are multiples of
/// 64, as k is.
std::string ProductOfWarpgroups(const Sizes& size);

}  // namespace tenon::test
