// Units that multiply less than what they are given: f32 as tf32, with 10 bits of mantissa. A
// machine has them only where somebody asked for that.
#pragma once

#include <optional>

#include "cost/machine.h"

namespace tenon {

/// The machine with those of its units that round their factors; nullopt where it has none.
std::optional<Machine> WithRoundingUnits(Machine machine);

}  // namespace tenon
