// Choices among the steps of stages: the engine's, on loops that stages were made with.
#include <fmt/format.h>

#include "stages/arguments.h"
#include "stages/stage_schedule.h"

namespace tenon::stages {

static constexpr const char* kPerfectTile = "sample_perfect_tile";

// Keeps a choice that went well.
Status StageSchedule::Chosen(Schedule next, const TraceStep& asked) {
  TN_RETURN_IF_ERROR(next.status());
  steps_.steps.push_back({asked.primitive, asked.args, next.trace().steps.back().results});
  state_.base = std::move(next);
  return Ok();
}

Expected<int64_t> StageSchedule::Decide(const std::string& name, const std::vector<int64_t>& domain,
                                        int64_t guess) {
  Schedule next = state_.base;
  const int64_t value = next.Decide(name, domain, guess);
  TN_RETURN_IF_ERROR(Chosen(std::move(next), {"decide", {name, domain, guess}, {}}));
  return value;
}

Expected<int64_t> StageSchedule::SampleCategorical(const std::string& name,
                                                   const std::vector<int64_t>& candidates,
                                                   const std::vector<double>& probabilities) {
  Schedule next = state_.base;
  const int64_t value = next.SampleCategorical(name, candidates, probabilities);
  const TraceStep step{"sample_categorical", {name, candidates, probabilities}, {}};
  TN_RETURN_IF_ERROR(Chosen(std::move(next), step));
  return value;
}

Expected<std::vector<int64_t>> StageSchedule::SamplePerfectTile(const std::string& name,
                                                                LoopId loop, int64_t parts,
                                                                int64_t max_innermost) {
  const StageInfo& stage = state_[state_[loop].stage];
  TN_ASSIGN_OR_RETURN(const std::string found, RootName(loop));
  Schedule next = state_.base;
  const std::vector<int64_t> values = next.SamplePerfectTile(name, found, parts, max_innermost);
  const TraceStep step{
      kPerfectTile, {name, stage.name, state_[loop].name, parts, max_innermost}, {}};
  TN_RETURN_IF_ERROR(Chosen(std::move(next), step));
  return values;
}

// The engine's name of a loop that a stage was made with.
Expected<std::string> StageSchedule::RootName(LoopId loop) const {
  const StageInfo& stage = state_[state_[loop].stage];
  TN_ASSIGN_OR_RETURN(LoopNames names, RootNames(stage, state_.base, ""));
  if (!names[loop].empty()) return names[loop];
  return MakeError(fmt::format(
      "sample_perfect_tile: '{}' is no loop that an operation was made with", state_[loop].name));
}

Status StageSchedule::ReplayChoice(const TraceStep& choice) {
  TraceStep step = choice;
  if (choice.primitive == kPerfectTile) {  // whose loop is a stage's here
    const Call call{state_, kPerfectTile};
    Arguments arguments(call, choice.args);
    TN_ASSIGN_OR_RETURN(const auto typed,
                        (TakeAll<Text, Stage, Loop, AttrValue, AttrValue>(&arguments)));
    TN_ASSIGN_OR_RETURN(const std::string found, RootName(std::get<Loop>(typed).id));
    step.args = {std::get<Text>(typed), found, std::get<3>(typed), std::get<4>(typed)};
  }
  Schedule next = state_.base;
  tenon::ReplayChoice(&next, step);
  return Chosen(std::move(next), choice);
}

}  // namespace tenon::stages
