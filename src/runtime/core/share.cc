// Loops that a team shares out.
//
// Each member begins with a share of its own, the same at every call, so that it finds in its cache
// what it left there. The share is cut into parts that shrink; its owner takes them from the front,
// and who has none left takes from the ends of the others' shares. So a member that another process
// keeps from its CPU delays the team by the part that it is in, and not by all it would have done;
// where nobody is late the last few parts at most change hands.
//
//   share of member r of 2:   |     4r/8    |    4r+1/8   | 8r+4/16 | 8r+5/16 | …/32 | …/32 | …
//
// A share is a word, [loop | first | end], so taking a part is one exchange, and a member may be
// taken from before it has come to the loop at all. Nobody goes on to the next loop before all
// shares of this one are used up, which they stay; so a word that has the number of a later loop
// says that nothing is left of this one, and one that has the number of an earlier loop that
// nothing was taken yet. A worker that has left the team may be in another while others of this one
// look at its share: its loops there have later numbers, too.
//
// A call that may end early looks at the clock before each part, and a team of one has parts too
// then. What is left of a loop nobody does; that the call fails the next barrier says to all
// members alike, or its end, for which `cut` is there.
#include "runtime/core/team.h"

namespace tenon::runtime {
namespace {

// How many parts a share of so many iterations has.
constexpr uint32_t kMostParts = 8;
uint32_t PartsOf(int64_t iterations) {
  return iterations >= 16 ? kMostParts : iterations >= 4 ? 4 : iterations >= 2 ? 2 : 1;
}

// Part `index` of the share of `rank`, of `parts`: of 8 the first two are a quarter of the share
// each, the next two an eighth, the rest a sixteenth; fewer are equal.
void Place(int32_t rank, int32_t size, uint32_t parts, uint32_t index, tn_part* part) {
  const auto i = static_cast<int32_t>(index);
  int32_t per = static_cast<int32_t>(parts), first = i;
  if (parts == kMostParts) {
    per = i < 2 ? 4 : i < 4 ? 8 : 16;
    first = i < 2 ? i : i < 4 ? 4 + (i - 2) : 12 + (i - 4);
  }
  part->rank = rank * per + first;
  part->size = size * per;
}

// Takes a part of a share: its first, or its last.
bool Take(Share* share, uint32_t loop, uint32_t parts, bool first_one, uint32_t* index) {
  uint64_t now = share->left.load(std::memory_order_relaxed);
  for (;;) {
    const auto at = static_cast<uint32_t>(now >> 32);
    if (static_cast<int32_t>(at - loop) > 0) return false;
    uint32_t first = 0, end = parts;
    if (at == loop) {
      first = static_cast<uint32_t>(now >> 16) & 0xffff;
      end = static_cast<uint32_t>(now) & 0xffff;
    }
    if (first >= end) return false;
    *index = first_one ? first++ : --end;
    const uint64_t then = uint64_t{loop} << 32 | first << 16 | end;
    // What parts wrote is made visible by barriers.
    if (share->left.compare_exchange_weak(now, then, std::memory_order_relaxed)) return true;
  }
}

// Of a loop of a team of one, in a call that may end early.
constexpr uint32_t kLoneParts = 32;

bool IsCut(const CallLimits* limits) {
  if (!limits || !IsOver(*limits)) return false;
  __atomic_store_n(&limits->cut, 1, __ATOMIC_RELAXED);
  return true;
}

}  // namespace
}  // namespace tenon::runtime

extern "C" int32_t tn_core_take(tn_team* member, int64_t extent, tn_part* part) {
  using namespace tenon::runtime;
  if (extent <= 0) return 0;
  const CallLimits* limits =
      member && member->limits && member->limits->HasEnd() ? member->limits : nullptr;
  if (!member || member->size == 1) {
    const uint32_t parts = !limits               ? 1
                           : extent < kLoneParts ? static_cast<uint32_t>(extent)
                                                 : kLoneParts;
    if (part->loop >= parts || IsCut(limits)) return 0;
    *part = {static_cast<int32_t>(part->loop), static_cast<int32_t>(parts), part->loop + 1, 0};
    return 1;
  }
  if (part->loop == 0) part->loop = ++member->loops;
  const uint32_t parts = PartsOf(extent / member->size);
  uint32_t index;
  for (int32_t i = 0; i < member->size; ++i) {
    const int32_t rank = (member->rank + i) % member->size;
    if (!Take(&member->members[rank]->share, part->loop, parts, i == 0, &index)) continue;
    Place(rank, member->size, parts, index, part);
    return !IsCut(limits);
  }
  return 0;
}
