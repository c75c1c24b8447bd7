// Messages of the schedule engine in the words of whoever wrote the schedule.
#pragma once

#include "stages/carry_out.h"

namespace tenon::stages {

/// The messages with the engine's names of loops, "C.i.0.1", as the stages call them,
/// "i.outer.inner"; where two loops of stages are called alike, each with its stage's name before
/// it.
Diagnostics InUsersNames(Diagnostics errors, const Carried& carried);

}  // namespace tenon::stages
