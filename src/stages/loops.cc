// Changes of a stage's loops, which later steps see at once; the loops of the engine follow when
// the schedule is carried out.
#include <fmt/format.h>

#include <algorithm>

#include "stages/primitives.h"

namespace tenon::stages {

// What a mark says of how a loop runs; "" where it says something else.
static std::string HowItRuns(const Waiting& step) {
  if (step.primitive == "parallel") return "parallel";
  if (step.primitive == "vectorize") return "vectorized";
  if (step.primitive == "unroll") return "unrolled";
  if (step.primitive == "bind") return "bound to " + std::get<std::string>(step.args[0]);
  return "";
}

Status Call::RequireUnmarked(StageId stage, LoopId loop) const {
  for (const Waiting& step : s.waiting) {
    if (step.phase != Phase::kMark || step.loop != loop) continue;
    const std::string how = HowItRuns(step);
    if (how.empty()) continue;
    return Wrong(stage,
                 fmt::format("loop '{}' is {} already; how a loop runs is said once, when it "
                             "is as it stays",
                             s[loop].name, how));
  }
  return Ok();
}

Expected<Made> Split(const Call& c, const Stage& stage, const Loop& loop, const Numbers& factors) {
  TN_RETURN_IF_ERROR(c.RequireUnmarked(stage, loop.id));
  if (factors.values.empty()) return c.Wrong(stage, "no factors");
  const LoopInfo parent = c.s[loop.id];
  const size_t count = factors.values.size();
  const std::vector<int64_t>& values = factors.values;
  const auto derived = std::count(values.begin(), values.end(), -1);
  const auto wrong = std::find_if(values.begin(), values.end(),
                                  [&](int64_t f) { return f < 1 && (f != -1 || derived > 1); });
  if (wrong != values.end()) {
    const bool one = count == 2 && derived > 0;  // the other is what is left
    return c.Wrong(stage,
                   fmt::format("the factor{} of '{}' {} at least 1 but {} {}", one ? "" : "s",
                               parent.name, one ? "is" : "are", one ? "is" : "one is", *wrong));
  }
  Made made;
  for (size_t i = 0; i < count; ++i) {
    const std::string part = count == 2 ? (i == 0 ? "outer" : "inner") : std::to_string(i);
    made.loops.push_back(c.s.AddLoop(stage, parent.name + "." + part, parent.reduces));
  }
  std::vector<LoopId>& leaves = c.s[stage].leaves;
  auto place = leaves.erase(leaves.begin() + static_cast<long>(loop.place));
  leaves.insert(place, made.loops.begin(), made.loops.end());
  c.s[stage].steps.push_back({LoopStep::Kind::kSplit, {loop.id}, made.loops, factors.given});
  return made;
}

Expected<Made> Fuse(const Call& c, const Stage& stage, const Loops& loops) {
  if (loops.empty()) return MakeError("fuse of no loops");
  std::string name;
  bool reduces = true;
  std::vector<LoopId> from;
  for (const Loop& loop : loops) {
    TN_RETURN_IF_ERROR(c.RequireUnmarked(stage, loop.id));
    from.push_back(loop.id);
    name += c.s[loop.id].name + ".";
    reduces &= c.s[loop.id].reduces;
  }
  for (size_t i = 0; i < loops.size(); ++i) {
    if (loops[i].place == loops[0].place + i) continue;
    return c.Wrong(stage, fmt::format("{} are not neighbours in this order; its loops are {}",
                                      c.s.Names(from), c.s.Names(c.s[stage].leaves)));
  }
  if (loops.size() == 1) return Made{{loops[0].id}, {}};
  const LoopId fused = c.s.AddLoop(stage, name + "fused", reduces);
  std::vector<LoopId>& leaves = c.s[stage].leaves;
  auto first = leaves.begin() + static_cast<long>(loops[0].place);
  *first = fused;
  leaves.erase(first + 1, first + static_cast<long>(loops.size()));
  c.s[stage].steps.push_back({LoopStep::Kind::kFuse, from, {fused}, {}});
  return Made{{fused}, {}};
}

Expected<Made> Reorder(const Call& c, const Stage& stage, const Loops& order) {
  std::vector<size_t> places;
  std::vector<LoopId> loops;
  for (const Loop& loop : order) {
    places.push_back(loop.place);
    loops.push_back(loop.id);
  }
  std::sort(places.begin(), places.end());
  if (std::adjacent_find(places.begin(), places.end()) != places.end()) {
    return c.Wrong(stage, "a loop is named twice");
  }
  for (size_t i = 0; i < loops.size(); ++i) c.s[stage].leaves[places[i]] = loops[i];
  c.s[stage].steps.push_back({LoopStep::Kind::kReorder, loops, {}, {}});
  return Made{};
}

void ApplyLoopStep(const LoopStep& step, Schedule* schedule, LoopNames* names) {
  std::vector<std::string> from;
  for (LoopId loop : step.from) {
    const std::string& name = (*names)[loop];
    if (!name.empty()) from.push_back(name);
  }
  // A loop that is not there has one iteration, and so have its parts.
  std::vector<std::string> made(step.to.size());
  switch (step.kind) {
    case LoopStep::Kind::kSplit:
      if (!from.empty()) made = ApplyByName(schedule, "split", {from[0], step.factors});
      made.resize(step.to.size());
      break;
    case LoopStep::Kind::kFuse:
      if (!from.empty()) made[0] = from.size() == 1 ? from[0] : schedule->Fuse(from);
      break;
    case LoopStep::Kind::kReorder:
      if (from.size() > 1) schedule->Reorder(from);
      break;
  }
  for (size_t i = 0; i < made.size(); ++i) (*names)[step.to[i]] = made[i];
}

}  // namespace tenon::stages
