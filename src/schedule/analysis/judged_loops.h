// The loops that were found to run their iterations at the same time rightly.
#pragma once

#include <map>
#include <vector>

#include "loop/stmt.h"

namespace tenon::primitive {

/// Loops by identity, each with the statements around it when it was judged, outermost first, and
/// itself last: held, so that no other statement takes its address. Only loops whose iterations
/// have no memory of their own, so that what is elsewhere in the function does not matter.
using JudgedLoops = std::map<const Node*, std::vector<Stmt>>;

}  // namespace tenon::primitive
