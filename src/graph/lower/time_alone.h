// What a launch takes on one worker.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "ops/kernel.h"

namespace tenon::graph {

/// By the cost model, as attribute kAlone of a launch has it (loop/workspace.h): between what the
/// kernel's algorithm costs at the least and at typical sizes it is linear in the number of
/// elements of the memory of open size that it is given, borders and all. Empty where that is not
/// known.
std::vector<int64_t> TimeAlone(const Graph& region, std::span<const Region> args,
                               const ops::Kernel& kernel, const Machine& one_worker);

}  // namespace tenon::graph
