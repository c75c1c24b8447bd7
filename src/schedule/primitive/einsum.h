// Blocks alone in their nests: one loop per iteration variable, nothing else.
#pragma once

#include "schedule/analysis/nest.h"

namespace tenon::primitive {

/// The outermost loop of the nest that gives each iteration variable of the block a loop of its own
/// over its whole domain, from 0, in any order, and holds nothing else.
Expected<Stmt> PlainNestOf(const Place& place);

}  // namespace tenon::primitive
