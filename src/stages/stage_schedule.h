// Schedules of stages: what `s[C].split(…)`, `compute_at`, `cache_read` mean.
//
// People schedule tensors, not loops: they write the primitives of several stages in any order, and
// speak of loops by handles that must hold whatever is done to others. The engine (schedule/) is
// the opposite: every primitive is applied at once, and moving a block renames its loops. This
// floor is between them. A program is a function as te makes it, one block under serial loops per
// tensor; each block is a stage. A step names a stage and its loops,
//
//   i.outer, i.inner = split("C", "i", [-1, 8])
//   compute_at("B", "C", "i.outer")
//
// and is written down. CarryOut applies what was written down to the function, consumers first, by
// primitives of the engine. Steps are a Trace: they print, parse, are stored and replayed, on
// programs of other sizes too.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "stages/state.h"

namespace tenon::stages {

/// What stages call loops, "i.outer.inner", by the engine's names of them, "C.i.0.1"; where two
/// loops of stages are called alike, each with its stage's name before it.
using UsersNames = std::map<std::string, std::string>;

/// A message in these words.
std::string InUsersNames(const std::string& message, const UsersNames& names);
Diagnostics InUsersNames(Diagnostics errors, const UsersNames& names);

/// The stages of one function. A value: a copy is an independent schedule. Not thread-safe.
class StageSchedule {
 public:
  /// The stages of module.funcs[func]: its blocks, and its parameters that no block writes. Errors:
  /// there is no such function, or a stage's loop is not as te makes it.
  static Expected<StageSchedule> Of(Module module, const std::string& func);

  /// Stages, loops, and the function as far as steps that make stages have changed it.
  const State& state() const { return state_; }

  /// One step: a row of tenon/stage_primitives.def with its arguments, stages, loops and tensors by
  /// their names. What is wrong with it by itself is an error here, and changes nothing; what is
  /// wrong with the schedule is one of CarryOut.
  Expected<Made> Apply(const std::string& primitive, std::vector<AttrValue> args);
  /// Choices, as the engine's; a loop to be tiled is one that a stage was made with.
  Expected<int64_t> Decide(const std::string& name, const std::vector<int64_t>& domain,
                           int64_t guess);
  Expected<int64_t> SampleCategorical(const std::string& name,
                                      const std::vector<int64_t>& candidates,
                                      const std::vector<double>& probabilities);
  Expected<std::vector<int64_t>> SamplePerfectTile(const std::string& name, LoopId loop,
                                                   int64_t parts, int64_t max_innermost);
  /// Choices to take instead of guesses, from now on.
  void UseDecisions(std::map<std::string, int64_t> choices) {
    state_.base.UseDecisions(std::move(choices));
  }
  /// Makes a function of kind device known, for tensorize to call.
  void AddIntrinsic(const Func& func) { state_.intrinsics[func->name] = func; }

  /// What was asked for, in order, and of what: the module that Of was given, with the intrinsics
  /// that were made known since.
  const Trace& steps() const { return steps_; }
  Module program() const;
  /// Applies steps that were written down. What they made must get the names that it had; steps
  /// without names for what they make are taken, too.
  Status Replay(const Trace& steps);

  /// The function scheduled. Its trace has what was applied to the function that Of was given.
  /// `names` gets what the stages call its loops, for messages about it (InUsersNames).
  Expected<Schedule> CarryOut(UsersNames* names = nullptr) const;

 private:
  explicit StageSchedule(State state) : program_(state.base.module()), state_(std::move(state)) {}
  Status Chosen(Schedule next, const TraceStep& asked);
  Expected<std::string> RootName(LoopId loop) const;
  Status ReplayChoice(const TraceStep& choice);

  Module program_;
  State state_;
  Trace steps_;
};

/// The names of all primitives of stages.
std::vector<std::string> PrimitiveNames();

}  // namespace tenon::stages
