// Schedules for those who hold steps as data: façades, floors above, readers of traces.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "schedule/schedule.h"

namespace tenon {

/// What became of names: the loop or block of the first name is gone, and one of the second stands
/// in its place, or several do.
using Renames = std::vector<std::pair<std::string, std::string>>;

/// Applies a primitive as a step of a trace has it, and returns its results; errors are the
/// schedule's.
std::vector<std::string> ApplyByName(Schedule* schedule, const std::string& primitive,
                                     std::vector<AttrValue> args, Renames* renamed = nullptr);
/// A choice as it stands in a trace: with the choices in force, else as it chose before where that
/// is possible still, else by its guess.
void ReplayChoice(Schedule* schedule, const TraceStep& choice);
/// What went wrong; the schedule, which a failed primitive left as it was, goes on from there.
Diagnostics TakeErrors(Schedule* schedule);
/// Puts a function into the module, for Tensorize to call. No primitive: no trace has it.
void AddFunction(Schedule* schedule, const Func& func);

}  // namespace tenon
