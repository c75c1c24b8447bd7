// How a kernel in thread form is launched: the form that back ends for GPUs take.
//
// A kernel is one nest of loops over thread axes around its body, each axis once: blockIdx.{x,y,z}
// with extents over the kernel's dims, threadIdx.{x,y,z} with constant ones. Between and inside
// them stand allocations, lets and what is lowered for any machine.
#pragma once

#include <array>
#include <map>

#include "loop/func.h"
#include "support/expected.h"
#include "target/target.h"

namespace tenon::codegen {

struct GpuLaunch {
  std::array<Expr, 3> grid;  // blocks along x, y, z, over the kernel's dims
  std::array<int64_t, 3> block = {1, 1, 1};
  /// Offsets of the shared buffers, in the order in which they are allocated. None shares memory
  /// with another.
  std::map<const BufferNode*, int64_t> shared;
  int64_t shared_bytes = 0;
  /// Whether the launch must ask for them: arrays of fixed size end at 48 KiB.
  bool dynamic_shared = false;

  int64_t threads() const { return block[0] * block[1] * block[2]; }
};

/// Reads the form off a kernel and holds it against the limits of its GPU; errors name the function
/// and the construct.
Expected<GpuLaunch> LaunchOf(const PrimFunc& kernel, const GpuLimits& limits);

}  // namespace tenon::codegen
