// What the members of a team see of each other: for the pool, which makes teams, and for what
// members call.
#pragma once

#include <atomic>

#include "runtime/core/pool.h"

namespace tenon::runtime {

struct Team;

// Enough for 256 members: round k of a barrier reaches members 2^k apart.
inline constexpr int32_t kRounds = 8;
inline constexpr int32_t kMaxTeam = 1 << kRounds;

// A counter that one member raises and one waits for; on a cache line of its own. The receiver
// sleeps on `asleep`, not on the counter: a futex compares 32 bits, and of the counter's halves
// neither changes with every raise (the lower one counts a team's barriers and starts anew).
struct alignas(64) Signal {
  std::atomic<uint64_t> value;
  std::atomic<uint32_t> asleep;
};

// What is left of one member's share of a loop (share.cc): the loop's number, and which
// of the share's parts nobody has taken, [first, end), in 32, 16 and 16 bits. On a cache line of
// its own.
struct alignas(64) Share {
  std::atomic<uint64_t> left;
};

}  // namespace tenon::runtime

// One member's own view of its team; what a body is given.
struct tn_team {
  alignas(64) tenon::runtime::Team* team;
  int32_t rank;
  int32_t size;
  uint64_t phase;                            // the team's epoch plus the barriers passed
  const tenon::runtime::CallLimits* limits;  // of the call; null: none
  std::atomic<int32_t> cpu;                  // where it was last seen
  int32_t moves;                             // to other CPUs, in this team
  tn_team* const* members;                   // of the team, by rank
  uint32_t loops;                            // the number of the loop that it has begun to share
  tenon::runtime::Signal signals[tenon::runtime::kRounds];
  tenon::runtime::Share share;
};
