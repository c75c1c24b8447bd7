// The one shape that kernels with register tiles share: the output is tiled, the anchor is computed
// per tile in registers, its reduction loops stand outside the unrolled tile, and what follows the
// anchor happens as the tile is stored.
#pragma once

#include "ops/scheduling.h"

namespace tenon::ops {

/// out[n, c, h, w] in channel blocks; choices nv, tile_height, tile_width, parallel_loops.
/// `unroll_window`: the innermost loop over a short window is written out.
void ScheduleBlockedTile(Schedule& s, const Parts& parts, const Machine& machine,
                         const Point& point, bool unroll_window);

/// The loops of the output are `outer` and then the tile's: rows, vectors, lanes. The anchors are
/// computed per tile, and the first loops of `outer` run in parallel. `panels`: of `outer`, the
/// loop that each turn of has another panel of the anchor's second operand, which its tiles all
/// read; "" where there is none.
void FillTile(Schedule& s, const Parts& parts, const Machine& machine, const Point& point,
              const Names& outer, const Names& tile, const std::string& panels = "");

}  // namespace tenon::ops
