#include "opt_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "interp/arguments.h"
#include "loop/print.h"
#include "loop/verify.h"
#include "schedule/schedule.h"
#include "stages/stage_schedule.h"
#include "support/strings.h"

namespace tenon {

std::string TraceInText(std::string_view text) {
  std::string out;
  for (const std::string& raw : Split(text, '\n')) {
    std::string_view line = Trim(raw);
    if (line.starts_with("//>")) out += std::string(line.substr(3)) + "\n";
  }
  return out;
}

namespace {

// ---- Running a function ----

using Dims = DimValues;
constexpr int64_t kSizes = 13;  // so many values of each dim are tried

// Sizes for the function's dims, the k-th choice: small multiples of the step above the least, in
// another order for each dim.
Dims DimsAt(const PrimFunc& func, int64_t k) {
  Dims out;
  for (size_t i = 0; i < func.dims.size(); ++i) {
    DimRange range = func.dim_range(i);
    int64_t size = range.lo + k * static_cast<int64_t>(i + 1) % kSizes * range.step;
    if (range.hi >= 0 && size > range.hi) size = range.lo;
    out[func.dims[i]->name] = size;
  }
  return out;
}

Expected<std::vector<double>> Outputs(const Module& module, const std::string& name,
                                      const Dims& dims, uint64_t seed) {
  const PrimFunc& func = *module.Find(name);
  TN_ASSIGN_OR_RETURN(std::vector<InterpArg> args, SmallIntegerArgs(func, dims, 7));
  InterpOptions options;
  options.seed = seed;
  options.dims = dims;
  TN_RETURN_IF_ERROR(Interpret(module, name, args, options));
  std::vector<double> out;
  for (size_t i = func.buffers.size() - static_cast<size_t>(func.num_outputs);
       i < func.buffers.size(); ++i) {
    for (int64_t k = 0; k < args[i].num_elements(); ++k) out.push_back(args[i].Get(k));
  }
  return out;
}

// Equal, but for the rounding of what is no integer.
bool Agree(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return true;
  bool exact = a == std::trunc(a) && b == std::trunc(b);
  return !exact && std::abs(a - b) <= 1e-5 * std::max(1.0, std::abs(a));
}

Status CheckMeaning(const Module& before, const Module& after, const std::string& name) {
  int64_t sizes = before.Find(name)->dims.empty() ? 1 : kSizes;
  for (int64_t k = 0; k < sizes; ++k) {
    Dims dims = DimsAt(*before.Find(name), k);
    TN_ASSIGN_OR_RETURN(std::vector<double> want, Outputs(before, name, dims, 0));
    for (uint64_t seed : {0, 1, 2}) {
      TN_ASSIGN_OR_RETURN(std::vector<double> got, Outputs(after, name, dims, seed));
      auto differ = std::mismatch(want.begin(), want.end(), got.begin(), got.end(), Agree);
      if (differ.first == want.end()) continue;
      return MakeError(
          fmt::format("check: output element {} is {} before and {} after the schedule",
                      differ.first - want.begin(), *differ.first, *differ.second));
    }
  }
  return Ok();
}

// ---- The trace ----

Status CheckTrace(const Module& before, const Schedule& after) {
  const std::string text = after.trace().ToString();
  TN_ASSIGN_OR_RETURN(Trace parsed, Trace::Parse(text));
  if (parsed != after.trace())
    return MakeError("check: the trace reads back differently:\n" + text);
  TN_ASSIGN_OR_RETURN(Trace stored, Trace::FromJson(after.trace().ToJson()));
  if (stored != after.trace()) {
    return MakeError("check: the trace changes when it is stored:\n" + after.trace().ToJson());
  }
  Schedule again(before, after.func()->name);
  TN_RETURN_IF_ERROR(again.Replay(parsed));
  if (Print(again.module()) != Print(after.module()) || again.trace() != after.trace()) {
    return MakeError("check: the trace replays to something else:\n" + text);
  }
  return Verify(after.module(), Stage::kSchedulable);
}

Expected<std::string> FunctionToSchedule(const Module& module) {
  std::vector<std::string> names;
  for (const auto& [name, func] : module.funcs) {
    if (func->func_kind != FuncKind::kDevice) names.push_back(name);
  }
  if (names.size() == 1) return names[0];
  return MakeError(
      fmt::format("a trace schedules one function, but the text has {}", names.size()));
}

/// A schedule, of loops or of stages, as the lines of a text are applied to it.
struct Engine {
  std::function<Status(const Trace&)> replay;
  std::function<Status(const Trace&)> attempt;  // on a copy
};

// What a refused step says; the schedule is left as it was.
Expected<std::string> Refusal(const Engine& engine, const std::string& step) {
  TN_ASSIGN_OR_RETURN(Trace trace, Trace::Parse(step));
  Status status = engine.attempt(trace);
  if (status) return MakeError("this step was to be refused, but it is legal: " + step);
  std::vector<std::string> texts;
  for (const Diagnostic& d : status.errors()) texts.push_back(d.ToString());
  return Join(texts, "\n");
}

// Applies the steps; the messages of those that had to be refused.
Expected<std::vector<std::string>> ApplyLines(std::string_view text, const Engine& engine) {
  std::vector<std::string> refusals;
  // Steps up to the next one that must be refused are replayed at once, so that what is wrong with
  // a line is said with its number.
  std::string pending;
  auto flush = [&]() -> Status {
    TN_ASSIGN_OR_RETURN(Trace trace, Trace::Parse(pending));
    pending =
        std::string(static_cast<size_t>(std::count(pending.begin(), pending.end(), '\n')), '\n');
    return engine.replay(trace);
  };
  for (const std::string& raw : Split(text, '\n')) {
    std::string_view line = Trim(raw);
    if (!line.starts_with("!")) {
      pending += raw + "\n";
      continue;
    }
    TN_RETURN_IF_ERROR(flush());
    pending += "\n";
    TN_ASSIGN_OR_RETURN(std::string message, Refusal(engine, std::string(Trim(line.substr(1)))));
    refusals.push_back(std::move(message));
  }
  TN_RETURN_IF_ERROR(flush());
  return refusals;
}

// Steps of stages print, store and replay to the same, in the words of the program that they came
// with.
Status CheckSteps(const Module& program, const std::string& name,
                  const stages::StageSchedule& stages, const Schedule& carried) {
  TN_ASSIGN_OR_RETURN(Trace parsed, Trace::Parse(stages.steps().ToString()));
  TN_ASSIGN_OR_RETURN(Trace stored, Trace::FromJson(stages.steps().ToJson()));
  if (parsed != stages.steps() || stored != stages.steps()) {
    return MakeError("check: the steps read back differently:\n" + stages.steps().ToString());
  }
  TN_ASSIGN_OR_RETURN(stages::StageSchedule again, stages::StageSchedule::Of(program, name));
  TN_RETURN_IF_ERROR(again.Replay(parsed));
  TN_ASSIGN_OR_RETURN(const Schedule same, again.CarryOut());
  if (Print(same.module()) == Print(carried.module())) return Ok();
  return MakeError("check: the steps replay to something else:\n" + parsed.ToString());
}

Status CheckSchedule(const Module& before, const Schedule& after, const std::string& name) {
  TN_RETURN_IF_ERROR(CheckTrace(before, after));
  return CheckMeaning(before, after.module(), name);
}

}  // namespace

Expected<Replayed> ReplayText(const Module& module, std::string_view text, bool check) {
  TN_ASSIGN_OR_RETURN(std::string name, FunctionToSchedule(module));
  Schedule schedule(module, name);
  const Engine engine{[&](const Trace& steps) { return schedule.Replay(steps); },
                      [&](const Trace& steps) { return Schedule(schedule).Replay(steps); }};
  Replayed out;
  TN_ASSIGN_OR_RETURN(out.refusals, ApplyLines(text, engine));
  out.module = schedule.module();
  if (check) TN_RETURN_IF_ERROR(CheckSchedule(module, schedule, name));
  return out;
}

Expected<Replayed> ReplayStages(const Module& module, std::string_view text, bool check) {
  TN_ASSIGN_OR_RETURN(std::string name, FunctionToSchedule(module));
  TN_ASSIGN_OR_RETURN(stages::StageSchedule stages, stages::StageSchedule::Of(module, name));
  const auto attempt = [&](const Trace& steps) -> Status {
    stages::StageSchedule copy = stages;
    TN_RETURN_IF_ERROR(copy.Replay(steps));
    TN_RETURN_IF_ERROR(copy.CarryOut());
    return Ok();
  };
  const Engine engine{[&](const Trace& steps) { return stages.Replay(steps); }, attempt};
  Replayed out;
  TN_ASSIGN_OR_RETURN(out.refusals, ApplyLines(text, engine));
  TN_ASSIGN_OR_RETURN(const Schedule carried, stages.CarryOut());
  out.module = carried.module();
  if (!check) return out;
  TN_RETURN_IF_ERROR(CheckSteps(module, name, stages, carried));
  TN_RETURN_IF_ERROR(CheckSchedule(module, carried, name));
  return out;
}

}  // namespace tenon
