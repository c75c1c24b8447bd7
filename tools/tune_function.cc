#include "tune_function.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "console.h"
#include "driver/profile.h"
#include "loop/parse.h"
#include "support/atomic_file.h"
#include "support/deep_stack.h"
#include "support/file.h"

namespace tenon::tools {

namespace {

using Json = nlohmann::ordered_json;

void WriteJson(const Json& json) {
  WriteOut(json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  FlushOutput();
}

void ShowTrial(const FunctionTuning& how, const tune::Trial& trial,
               const tune::KernelState& state) {
  const tune::Record& r = trial.record;
  if (how.quiet) return;
  if (how.json) {
    return WriteJson({{"trial", state.trials},
                      {"seconds", state.seconds},
                      {"algorithm", r.algorithm},
                      {"point", r.point},
                      {"outcome", r.outcome},
                      {"message", r.message},
                      {"us", 1e6 * r.seconds},
                      {"best_us", 1e6 * state.best_seconds}});
  }
  const std::string what = r.outcome == tune::kOk ? fmt::format("{:.4g} µs{}", 1e6 * r.seconds,
                                                                r.leader ? ", the best now" : "")
                                                  : fmt::format("{}: {}", r.outcome, r.message);
  PrintError("{:>5} {:7.1f} s  {}  {}\n", state.trials, state.seconds, what, r.Trace());
}

void ShowSummary(const FunctionTuning& how, const driver::OpenKernel& kernel,
                 const tune::KernelState& state) {
  const std::string best =
      state.best_seconds > 0 ? kernel.open().problem.Trace(state.best) : std::string();
  if (how.json) {
    return WriteJson({{"log", how.log},
                      {"stopped", state.stopped},
                      {"seconds", state.seconds},
                      {"trials", state.trials},
                      {"failures", state.failures},
                      {"sketches", kernel.open().problem.algorithms.size()},
                      {"best", best},
                      {"best_us", 1e6 * state.best_seconds}});
  }
  if (!best.empty()) Print("{:.4g} µs: {}\n", 1e6 * state.best_seconds, best);
  Print("{} trials of {} sketches, {} failed, in {:.1f} s; {}. Records: {}\n", state.trials,
        kernel.open().problem.algorithms.size(), state.failures, state.seconds, state.stopped,
        how.log);
}

Status Tune(const FunctionTuning& how, const std::atomic<bool>& stop) {
  TN_ASSIGN_OR_RETURN(const std::string text, ReadFile(how.how.model));
  TN_ASSIGN_OR_RETURN(const Module module, ParseModule(text, how.how.model));
  TN_ASSIGN_OR_RETURN(const Target target, Target::Parse(how.how.target));
  TN_ASSIGN_OR_RETURN(const driver::PlannedFor planned_for, driver::MachineFor(how.how, target));
  constexpr size_t kMostSketches = 64;
  TN_ASSIGN_OR_RETURN(
      const std::unique_ptr<driver::OpenKernel> kernel,
      driver::OpenKernel::OfSketches(module, planned_for.machine, {}, kMostSketches));
  driver::KernelTuning tuning = how.tuning;
  tuning.log = how.log;
  tuning.done = [&](const tune::Trial& trial, const tune::KernelState& state) {
    ShowTrial(how, trial, state);
  };
  TN_ASSIGN_OR_RETURN(const tune::KernelState state, driver::TuneKernel(*kernel, tuning, stop));
  ShowSummary(how, *kernel, state);
  if (how.trace.empty()) return Ok();
  if (state.best_seconds <= 0) return MakeError("no schedule works: there is no trace to write");
  TN_ASSIGN_OR_RETURN(const Schedule best,
                      kernel->sketches()->At(state.best.space, state.best.point));
  return WriteFile(how.trace, best.trace().ToString());
}

}  // namespace

bool IsLoopText(const std::string& path) {
  const Expected<MappedFile> file = MappedFile::Open(path);
  return file && file->text().starts_with("func @");
}

Status TuneLoopText(const FunctionTuning& how, const std::atomic<bool>& stop) {
  Status status = Ok();
  OnDeepStack([&] { status = Tune(how, stop); });
  return status;
}

}  // namespace tenon::tools
