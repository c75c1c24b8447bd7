#include "tune/bench.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <filesystem>

#include "support/atomic_file.h"

namespace tenon::tune {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using measure::Outcome;
using measure::Program;
using measure::RaceAnswer;

constexpr int64_t kNoisePairs = 200, kMostPairs = 400;

double Since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void Remove(const Program& program) {
  std::error_code none;
  if (!program.path.empty()) fs::remove(program.path, none);
}

}  // namespace

Expected<Program> Bench::Written(const Building& building) {
  TN_ASSIGN_OR_RETURN(const BuiltCandidate built, building.Wait());
  Program program{fmt::format("{}/{}.so", options_.folder, ++*options_.libraries), kFunction,
                  built.parameters};
  TN_RETURN_IF_ERROR(WriteFile(program.path, built.image));
  return program;
}

Status Bench::Announce(Record* record) {
  if (options_.log) return options_.log->Begin(record);
  record->id = NewId();
  return Ok();
}

Status Bench::Withdraw(const Record& record) {
  return options_.log ? options_.log->Drop(record.id) : Ok();
}

Status Bench::SetReference(const Building& reference) {
  if (!reference_.path.empty()) return Ok();
  const Clock::time_point start = Clock::now();
  TN_ASSIGN_OR_RETURN(Program built, Written(reference));
  const std::string results = built.path + ".results";
  const Expected<RaceAnswer> answer = options_.tools->race({.kernel = kernel_,
                                                            .reference = built,
                                                            .results = results,
                                                            .device = options_.device,
                                                            .team = options_.team});
  options_.spent->references += Since(start);
  if (answer && answer->outcome != Outcome::kOk) {
    return MakeError(
        fmt::format("what it computes by definition is not known: {}", answer->message));
  }
  // Where no worker can be started the kernel is not to blame: the first race ends the session.
  reference_ = std::move(built);
  results_ = results;
  return Ok();
}

Expected<RaceAnswer> Bench::Race(const Program& candidate, int64_t pairs) {
  Expected<RaceAnswer> answer = options_.tools->race({.kernel = kernel_,
                                                      .reference = reference_,
                                                      .results = results_,
                                                      .incumbent = incumbent_,
                                                      .candidate = candidate,
                                                      .device = options_.device,
                                                      .team = options_.team,
                                                      .noise = noise_,
                                                      .most_pairs = pairs,
                                                      .seconds = options_.race_seconds});
  if (answer) options_.spent->bursts += answer->timing_seconds;
  return answer;
}

// Runs a candidate, once it is built, with a record around it. What was not ok is in the answer.
Expected<RaceAnswer> Bench::Attempt(const Building& building, int64_t pairs, Record* record,
                                    Program* program) {
  if (record->id.empty()) TN_RETURN_IF_ERROR(Announce(record));
  const Clock::time_point start = Clock::now();
  Expected<Program> built = Written(building);
  options_.spent->building += Since(start);
  RaceAnswer answer;
  if (built) {
    *program = *built;
    // The first of a kernel runs against itself.
    if (incumbent_.path.empty()) incumbent_ = *built;
    Expected<RaceAnswer> raced = Race(*program, pairs);
    if (!raced) {
      // No candidate's fault.
      Remove(*program);
      TN_RETURN_IF_ERROR(Withdraw(*record));
      return raced.errors();
    }
    answer = *raced;
  } else {
    answer.outcome = Outcome::kError;
    answer.message = built.errors()[0].message;
  }
  record->outcome = ToString(answer.outcome);
  record->message = answer.message;
  return answer;
}

Status Bench::Finish(const Record& record) {
  return options_.log ? options_.log->Finish(record) : Ok();
}

Status Bench::Open(const Building& candidate, double known, Record* record) {
  Program program;
  incumbent_ = {};
  TN_ASSIGN_OR_RETURN(const RaceAnswer answer, Attempt(candidate, kNoisePairs, record, &program));
  if (answer.outcome != Outcome::kOk) {
    Remove(program);
    incumbent_ = {};
    return Finish(*record);
  }
  open_ = true;
  noise_ = answer.noise;
  seconds_ = known > 0 ? known : answer.incumbent_seconds;
  record->leader = true;
  record->seconds = seconds_;
  record->noise = answer.noise;
  record->pairs = answer.pairs;
  return Finish(*record);
}

Status Bench::Try(const Building& candidate, Record* record) {
  Program program;
  TN_ASSIGN_OR_RETURN(const RaceAnswer answer, Attempt(candidate, kMostPairs, record, &program));
  if (answer.outcome == Outcome::kOk) {
    record->seconds = seconds_ * std::exp(answer.log_ratio);
    record->noise = noise_;
    record->pairs = answer.pairs;
    record->leader = answer.faster;
  }
  TN_RETURN_IF_ERROR(Finish(*record));
  if (record->leader) {
    Remove(incumbent_);
    incumbent_ = program;
    seconds_ = record->seconds;
  } else {
    Remove(program);
  }
  return Ok();
}

Expected<double> Bench::Compare(const Building& candidate) {
  TN_ASSIGN_OR_RETURN(const Program program, Written(candidate));
  const Expected<RaceAnswer> answer = Race(program, kMostPairs);
  Remove(program);
  if (!answer) return answer.errors();
  if (answer->outcome != Outcome::kOk) return MakeError(answer->message);
  return answer->log_ratio;
}

}  // namespace tenon::tune
