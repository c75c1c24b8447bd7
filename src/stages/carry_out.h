// Carrying a schedule of stages out: what the files that do it share.
#pragma once

#include <set>

#include "stages/state.h"

namespace tenon::stages {

/// A schedule as far as it is carried out: the loops of the engine that stages have by now.
struct Carried {
  explicit Carried(const State& state) : s(state), schedule(state.base) {}

  const State& s;
  Schedule schedule;
  LoopNames names;           // of the loops of stages that are placed
  std::set<StageId> placed;  // not: inputs, and what is inline
  /// What became of names of loops and blocks that are no more.
  std::map<std::string, std::vector<std::string>> copies;

  std::vector<std::string> CopiesOf(const std::string& name) const;
};

/// What waits for all loops to be in their places, and what is to be unrolled of loops that are
/// arranged in time then.
Status CarryOutLate(Carried* c);
/// Whether a loop stays as it is until its iterations have been arranged in time, which marks on it
/// would stand in the way of.
bool IsArranged(const State& s, LoopId loop);

}  // namespace tenon::stages
