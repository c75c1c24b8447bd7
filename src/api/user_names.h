// Messages of the schedule engine in the words of whoever wrote the schedule.
#pragma once

#include "api/schedule_data.h"

namespace tenon::inline v0 {

/// The message with the engine's names of loops, "C.i.0.1", as the stages call them,
/// "i.outer.inner"; where two loops of stages are called alike, each with its stage's name before
/// it.
std::string InUsersNames(const std::string& message, const StageNames& names);

}  // namespace tenon::inline v0
