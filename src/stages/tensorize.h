// Tensorize by intrinsics that are not the engine's own.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace tenon::stages {

/// Functions of kind device by name, besides those of the module that is scheduled.
using Intrinsics = std::map<std::string, Func>;

/// The intrinsic NAME.update goes on from what is there: it is for parts of reductions of which
/// NAME does the whole.
std::string UpdateName(const std::string& name);

/// Schedule::Tensorize; where an intrinsic for whole reductions does not match, with the one for
/// parts of them, if there is one. The module gets the function that is called.
std::string Tensorize(const std::string& loop, const std::string& intrinsic,
                      const Intrinsics& intrinsics, Schedule* schedule);

}  // namespace tenon::stages
