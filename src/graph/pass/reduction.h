// Reductions as parts of patterns: with the axes kept, or put back by a reshape.
#pragma once

#include <string_view>

#include "graph/pass/pattern.h"

namespace tenon::graph {

/// reduce(x) under `slot`, or a reshape of it.
Pattern Reduction(int slot, Pattern x);

/// The axes of the reduce node behind `reduced`, if it is of this kind and `kept` (it, or its
/// reshape) has x's dims with those axes at 1; else none.
std::vector<int64_t> ReducedAxes(const Graph& g, ValueId reduced, std::string_view kind,
                                 ValueId kept);

}  // namespace tenon::graph
