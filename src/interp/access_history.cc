#include "interp/access_history.h"

namespace tenon::interp {

namespace {

constexpr uint32_t kSomeLane = 1U << 31;

bool SameThread(const Actor& a, const Actor& b) {
  return a.block == b.block && a.thread == b.thread;
}

// What `before` did is over, for all threads of its launch or of its cluster, when `now` acts.
bool LaunchMet(const Actor& before, const Actor& now) {
  return before.grid_epoch != now.grid_epoch;
}
bool ClusterMet(const Actor& before, const Actor& now) {
  return LaunchMet(before, now) ||
         (before.cluster == now.cluster && before.cluster_epoch != now.cluster_epoch);
}

// The same for every thread of a group of its block.
bool BarrierBetween(const Actor& before, const Actor& now, bool same_warp) {
  if (ClusterMet(before, now)) return true;
  if (before.block != now.block) return false;
  return before.cta_epoch != now.cta_epoch || (same_warp && before.warp_epoch != now.warp_epoch);
}

// `now` has heard of what `before` did.
bool IsTold(const Actor& before, const Actor& now, const Clock* seen) {
  return seen && before.clock > 0 && before.block == now.block && before.thread < seen->size() &&
         (*seen)[before.thread] >= before.clock;
}

bool Ordered(const Actor& before, const Actor& now, const Clock* seen) {
  return before.launch != now.launch || SameThread(before, now) ||
         BarrierBetween(before, now, before.warp == now.warp) || IsTold(before, now, seen);
}

}  // namespace

Actor Actor::SomeLane() const {
  Actor out = *this;
  out.thread = kSomeLane | warp;
  return out;
}

std::string Actor::ToString() const {
  if ((thread & kSomeLane) != 0)
    return "a lane of warp " + std::to_string(warp) + " of block " + std::to_string(block);
  return "thread " + std::to_string(thread) + " of block " + std::to_string(block);
}

bool AccessHistory::ReadersOrdered(const Mark& mark, const Actor& now) {
  const Actor& r = mark.reader;
  if (r.launch != now.launch) return true;
  switch (mark.readers) {
    case Group::kThread: return Ordered(r, now, nullptr);
    case Group::kWarp: return BarrierBetween(r, now, r.warp == now.warp);
    case Group::kBlock: return BarrierBetween(r, now, /*same_warp=*/false);
    case Group::kCluster: return ClusterMet(r, now);
    case Group::kLaunch: return LaunchMet(r, now);
  }
  return false;
}

const Actor* AccessHistory::UnorderedReader(const Mark& mark, const Actor& now, const Clock* seen) {
  if (!seen) return ReadersOrdered(mark, now) ? nullptr : &mark.reader;
  for (const Actor& r : mark.all) {
    if (!Ordered(r, now, seen)) return &r;
  }
  return nullptr;
}

void AccessHistory::AddReader(Mark* mark, const Actor& now, const Clock* seen) {
  if (seen) {
    std::erase_if(mark->all, [&](const Actor& r) { return Ordered(r, now, seen); });
    mark->all.push_back(now);
    return;
  }
  const Actor& r = mark->reader;
  if (ReadersOrdered(*mark, now)) {
    mark->readers = Group::kThread;
  } else if (r.cluster != now.cluster || mark->readers == Group::kLaunch) {
    mark->readers = Group::kLaunch;
  } else if (r.block != now.block || mark->readers == Group::kCluster) {
    mark->readers = Group::kCluster;
  } else if (r.warp != now.warp || mark->readers == Group::kBlock) {
    mark->readers = Group::kBlock;
  } else if (r.thread != now.thread) {
    mark->readers = Group::kWarp;
  }
  mark->reader = now;
}

std::string AccessHistory::Note(int64_t offset, int64_t bytes, const Actor& actor, AccessKind kind,
                                uint32_t visit, const Clock* seen) {
  for (int64_t i = offset; i < offset + bytes; ++i) {
    Mark& m = marks_[static_cast<size_t>(i)];
    const bool both_atomic = m.atomic && kind == AccessKind::kAtomic;
    const char* done = kind == AccessKind::kRead ? "is read by " : "is written by ";
    if (!both_atomic && !Ordered(m.writer, actor, seen)) {
      return done + actor.ToString() + " and was written by " + m.writer.ToString() +
             " with no sync between";
    }
    if (kind == AccessKind::kRead) {
      AddReader(&m, actor, seen);
      continue;
    }
    if (const Actor* reader = UnorderedReader(m, actor, seen)) {
      return done + actor.ToString() + " and was read by " + reader->ToString() +
             " with no sync between";
    }
    m.writer = actor;
    m.atomic = kind == AccessKind::kAtomic;
    m.all.clear();
    m.visit = visit;
  }
  return "";
}

bool AccessHistory::TornRead(int64_t offset, int64_t bytes, const Actor& actor,
                             const Clock* seen) const {
  for (int64_t i = offset; i < offset + bytes; ++i) {
    if (!Ordered(marks_[static_cast<size_t>(i)].writer, actor, seen)) return true;
  }
  return false;
}

bool AccessHistory::StaleRead(int64_t offset, int64_t bytes, const Actor& actor,
                              uint32_t visit) const {
  for (int64_t i = offset; i < offset + bytes; ++i) {
    const Mark& m = marks_[static_cast<size_t>(i)];
    if (m.writer.launch == actor.launch && m.visit < visit) return true;
  }
  return false;
}

}  // namespace tenon::interp
