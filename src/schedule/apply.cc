#include "schedule/apply.h"

#include "schedule/steps.h"

namespace tenon {

std::vector<std::string> ApplyByName(Schedule* schedule, const std::string& primitive,
                                     std::vector<AttrValue> args, Renames* renamed) {
  return Schedule::Steps::ApplyByName(*schedule, primitive, std::move(args), renamed);
}
void ReplayChoice(Schedule* schedule, const TraceStep& choice) {
  Schedule::Steps::ReplayChoice(*schedule, choice);
}
Diagnostics TakeErrors(Schedule* schedule) { return Schedule::Steps::TakeErrors(*schedule); }
void AddFunction(Schedule* schedule, const Func& func) {
  Schedule::Steps::AddFunction(*schedule, func);
}

}  // namespace tenon
