// How many threads a kernel's loops ask for along each axis: a part of bind_threads.
#pragma once

#include <string>
#include <vector>

#include "loop/pass/threads/place_syncs.h"

namespace tenon {

struct LaunchExtents {
  AxisExtents extents;  // of each axis the largest of its loops', over the kernel's dims
  std::vector<std::string> refused;  // loops whose extents the dims do not tell
};

/// Of a body in which loops over thread axes stand where the schedule has them. Operations of a
/// warp or warpgroup make the last axis as long as they need.
LaunchExtents LaunchExtentsOf(const PrimFunc& func, const Module& module, const Stmt& body);

/// Of operations that threads along the last axis do together; 0 where there are none.
int64_t LanesIn(const Stmt& stmt, const Module& module);

}  // namespace tenon
