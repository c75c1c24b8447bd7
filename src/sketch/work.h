// What a scheduled function does, as the model of costs has it: read off its loops, whoever made
// them. So sketches, templates and schedules of people are priced by what they are.
#pragma once

#include <optional>

#include "cost/estimate.h"
#include "loop/func.h"

namespace tenon::sketch {

/// Of a function of blocks and loops before passes. Nullopt: it does not fit the machine (threads
/// or shared memory of a block), or its sizes are open.
std::optional<WorkDescription> WorkOf(const PrimFunc& func, const Machine& machine);

}  // namespace tenon::sketch
