// Loops in the order of the lines of the cache.
#pragma once

#include <string>

#include "ops/scheduling.h"

namespace tenon::ops {

/// Vectors that gather their elements from far apart read a line of the cache for each element:
/// what else is in these lines is wanted next. Where neighbours along a loop of `outer`, the
/// block's loops around the vectorized one, lie side by side in what it gathers, that loop is cut
/// where lines end, and its inner part becomes the last of `outer`; of what is outside, the longer
/// loops come first, whose steps walk through memory on the other side. Else nothing changes.
void FollowLines(Schedule& s, const std::string& block, const std::string& vector, Names* outer);

}  // namespace tenon::ops
