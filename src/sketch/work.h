// What a scheduled function does, as the model of costs has it: read off its loops, whoever made
// them. So sketches, templates and schedules of people are priced by what they are.
#pragma once

#include <optional>

#include "cost/estimate.h"
#include "loop/func.h"
#include "sketch/nest.h"

namespace tenon::sketch {

/// Nullopt: it does not fit the machine (threads or shared memory of a block).
std::optional<WorkDescription> WorkOf(const Nest& nest, const Machine& machine);

/// Of a function of blocks and loops before passes. Nullopt also where its sizes are open.
std::optional<WorkDescription> WorkOf(const PrimFunc& func, const Machine& machine);

}  // namespace tenon::sketch
