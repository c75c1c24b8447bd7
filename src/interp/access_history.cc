#include "interp/access_history.h"

namespace tenon::interp {

namespace {

constexpr uint32_t kSomeLane = 1U << 31;

bool SameThread(const Actor& a, const Actor& b) {
  return a.block == b.block && a.thread == b.thread;
}

// What `before` did is over, for every thread of a group of its block, when `now` acts.
bool BarrierBetween(const Actor& before, const Actor& now, bool same_warp) {
  if (before.block != now.block) return false;
  return before.cta_epoch != now.cta_epoch || (same_warp && before.warp_epoch != now.warp_epoch);
}

bool Ordered(const Actor& before, const Actor& now) {
  return before.launch != now.launch || SameThread(before, now) ||
         BarrierBetween(before, now, before.warp == now.warp);
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
    case Group::kThread: return Ordered(r, now);
    case Group::kWarp: return BarrierBetween(r, now, r.warp == now.warp);
    case Group::kBlock: return BarrierBetween(r, now, /*same_warp=*/false);
    case Group::kLaunch: return false;
  }
  return false;
}

void AccessHistory::AddReader(Mark* mark, const Actor& now) {
  const Actor& r = mark->reader;
  if (ReadersOrdered(*mark, now)) {
    mark->readers = Group::kThread;
  } else if (r.block != now.block || mark->readers == Group::kLaunch) {
    mark->readers = Group::kLaunch;
  } else if (r.warp != now.warp || mark->readers == Group::kBlock) {
    mark->readers = Group::kBlock;
  } else if (r.thread != now.thread) {
    mark->readers = Group::kWarp;
  }
  mark->reader = now;
}

std::string AccessHistory::Note(int64_t offset, int64_t bytes, const Actor& actor, AccessKind kind,
                                uint32_t visit) {
  for (int64_t i = offset; i < offset + bytes; ++i) {
    Mark& m = marks_[static_cast<size_t>(i)];
    const bool both_atomic = m.atomic && kind == AccessKind::kAtomic;
    const char* done = kind == AccessKind::kRead ? "is read by " : "is written by ";
    if (!both_atomic && !Ordered(m.writer, actor)) {
      return done + actor.ToString() + " and was written by " + m.writer.ToString() +
             " with no sync between";
    }
    if (kind == AccessKind::kRead) {
      AddReader(&m, actor);
      continue;
    }
    if (!ReadersOrdered(m, actor)) {
      return done + actor.ToString() + " and was read by " + m.reader.ToString() +
             " with no sync between";
    }
    m.writer = actor;
    m.atomic = kind == AccessKind::kAtomic;
    m.visit = visit;
  }
  return "";
}

bool AccessHistory::TornRead(int64_t offset, int64_t bytes, const Actor& actor) const {
  for (int64_t i = offset; i < offset + bytes; ++i) {
    if (!Ordered(marks_[static_cast<size_t>(i)].writer, actor)) return true;
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
