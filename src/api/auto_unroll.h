// The pragma auto_unroll_max_step: which loops are unrolled, decided when all loops are there.
#pragma once

#include <string>

#include "schedule/schedule.h"

namespace tenon {

/// Unrolls the serial loops from `loop` inwards, inner ones first, whose copies come to at most
/// `max_steps` stores and calls; a loop around one that stays is left as it is.
void AutoUnroll(const std::string& loop, int64_t max_steps, Schedule* schedule);

}  // namespace tenon
