// Few rows times a matrix in two parts, by vectors of f32: a unit for tiles would multiply sixteen
// rows, and split them before. Each number of the matrix is its two parts added up, as panels of
// the unit's layout have them.
#pragma once

#include "ops/group.h"
#include "ops/micro_kernel.h"
#include "ops/scheduling.h"

namespace tenon::ops {

/// The rows of a tile; 0: the point is one of the unit's.
int64_t SplitRows(const Point& point);
/// How many rows there may be in a tile, as the values of a knob; 0 alone where the vectors of the
/// machine have nothing to do with the layout, or rows are many at all sizes.
std::vector<int64_t> SplitRowsChoices(const Site& site, const ProductShape& s);

WorkDescription SplitRowsWork(const Site& site, const ProductShape& s, const Point& point);
Operand BuildSplitRows(Group& group, const OpContext& op, const ProductShape& s,
                       const Point& point);
void ScheduleSplitRows(Schedule& s, const Parts& parts, const Machine& machine, const Point& point);

}  // namespace tenon::ops
