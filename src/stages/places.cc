// Where a stage is computed, and in which memory.
#include <fmt/format.h>

#include "schedule/run.h"
#include "stages/primitives.h"

namespace tenon::stages {

static Expected<Made> PutAt(const Call& c, StageId stage, StageId other, LoopId loop, Attach how) {
  if (other == stage) return MakeError("a stage cannot be computed inside itself");
  c.s[stage].attach = how;
  c.s[stage].at_stage = other;
  c.s[stage].at_loop = loop;
  return Made{};
}

Expected<Made> ComputeAt(const Call& c, const Stage& stage, const Stage& consumer,
                         const Loop& loop) {
  return PutAt(c, stage, consumer, loop.id, Attach::kAt);
}
Expected<Made> ReverseComputeAt(const Call& c, const Stage& stage, const Stage& producer,
                                const Loop& loop) {
  return PutAt(c, stage, producer, loop.id, Attach::kReverseAt);
}
Expected<Made> ComputeRoot(const Call& c, const Stage& stage) {
  c.s[stage].attach = Attach::kRoot;
  return Made{};
}
Expected<Made> ComputeInline(const Call& c, const Stage& stage) {
  if (c.s[stage].block.empty()) return MakeError(fmt::format("'{}' is an input", c.s[stage].name));
  c.s[stage].attach = Attach::kInline;
  return Made{};
}
Expected<Made> RollingBuffer(const Call& c, const Stage& stage) {
  c.s[stage].rolling = true;
  return Made{};
}
Expected<Made> SetScope(const Call& c, const Stage& stage, const Text& scope) {
  const Expected<Scope> named = primitive::ScopeArg(scope);
  if (!named)
    return MakeError("set_scope of '" + c.s[stage].name + "'" + named.errors()[0].message);
  c.s[stage].scope = *named;
  return Made{};
}

}  // namespace tenon::stages
