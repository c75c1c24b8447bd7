// The pragmas auto_unroll_max_step and unroll_explicit: which loops are unrolled, decided when all
// loops are there.
#pragma once

#include <string>

#include "schedule/schedule.h"

namespace tenon::stages {

/// Pragmas that carrying out reads: the loops from this one inwards are unrolled while that comes
/// to at most so many steps; and false where they are left to the compiler behind.
inline constexpr char kAutoUnrollPragma[] = "auto_unroll_max_step";
inline constexpr char kUnrollExplicitPragma[] = "unroll_explicit";

/// Unrolls the serial loops from `loop` inwards, inner ones first, whose copies come to at most
/// `max_steps` stores and calls; a loop around one that stays is left as it is.
void AutoUnroll(const std::string& loop, int64_t max_steps, Schedule* schedule);

}  // namespace tenon::stages
