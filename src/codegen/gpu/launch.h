// How a kernel in its bound form (loop/threads.h) is launched: over how many blocks of how many
// threads, with how much shared memory, and which attributes.
#pragma once

#include <array>
#include <map>

#include "loop/func.h"
#include "support/expected.h"
#include "target/target.h"

namespace tenon::codegen {

struct GpuLaunch {
  std::array<Expr, 3> grid;  // clusters of blocks along x, y, z, over the kernel's dims
  std::array<int64_t, 3> cluster = {1, 1, 1};  // blocks of each
  std::array<int64_t, 3> block = {1, 1, 1};
  /// Offsets of the shared buffers, in the order in which they are allocated. None shares memory
  /// with another.
  std::map<const BufferNode*, int64_t> shared;
  int64_t shared_bytes = 0;
  /// Whether the launch must ask for them: arrays of fixed size end at 48 KiB.
  bool dynamic_shared = false;
  bool cooperative = false, dependent = false;

  int64_t threads() const { return block[0] * block[1] * block[2]; }
};

/// Reads the form off a kernel and holds it against the limits of its GPU; errors name the function
/// and the construct.
Expected<GpuLaunch> LaunchOf(const PrimFunc& kernel, const Target& target);

}  // namespace tenon::codegen
