// What a sort gives out: elements by their rank, from where they stand.
#pragma once

#include <functional>

#include "ops/group.h"

namespace tenon::ops {

/// The place along the anchor's axis of the element of a rank, in a row: the indices of all other
/// axes.
using PlaceOfRank = std::function<Expr(const te::Indices& row, const Expr& rank)>;

/// The first result of a `topk`, its values; sets the second, their places.
Operand ElementsByRank(Group& group, const graph::Node& node, const PlaceOfRank& place);

}  // namespace tenon::ops
