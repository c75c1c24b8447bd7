// What `tenon-opt --replay` and `--stages` do: a schedule, of loops or of stages, applied to a text
// of loop IR.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "loop/func.h"
#include "support/expected.h"

namespace tenon {

/// The lines of a text that start with "//>", without that mark: a trace inside the text that it
/// schedules.
std::string TraceInText(std::string_view text);

struct Replayed {
  Module module;
  std::vector<std::string> refusals;  // messages of the steps that had to be refused
};

/// Applies a trace to the module's one function that is not `kind device`. A line "! step" is a
/// step that must be refused; it changes nothing, and its message is kept. With `check`, the result
/// must compute what the function did (the interpreter, on small random integers), and the trace
/// must print, parse, store as JSON and replay to the same.
Expected<Replayed> ReplayText(const Module& module, std::string_view trace, bool check);

/// The same for steps of stages (stages/stage_schedule.h), which are carried out at the end: a step
/// that must be refused may be so then.
Expected<Replayed> ReplayStages(const Module& module, std::string_view steps, bool check);

}  // namespace tenon
