// Products by warpgroups, of 128 threads each, whose unit reads both factors in shared memory and
// keeps sums in their registers. What is multiplied is as for warps (warp_tile.h), whose functions
// call these for points that are of groups.
#pragma once

#include "ops/algorithm/warp_tile.h"

namespace tenon::ops {

/// Whether tiles of warpgroups can be made of such a product: the machine has their unit, both
/// factors come in whole pieces, and k is whole steps.
bool HasGroupTiles(const WarpShape& shape, const Machine& machine);

int64_t GroupTileRows(const Point& point);
Space GroupTileSpace(const WarpShape& shape, const Machine& machine);
WorkDescription GroupTileWork(const WarpShape& shape, const Site& site, const Point& point);
void ScheduleGroupTiles(Schedule& s, const Parts& parts, const Machine& machine, const Point& point,
                        const WarpOrder& order);

}  // namespace tenon::ops
