// The numbers of a schedule as functions of its choices: extents of loops, and what blocks touch
// over them. A trace is followed once, step by step; afterwards a point is a few hundred
// multiplications and no schedule is made for it.
//
// What comes of a point is what replaying would give, as far as that is legal: whether a step is
// legal there is not asked, and loops of one iteration stay. So it is for looking at many points;
// the few that are wanted are replayed.
#pragma once

#include <optional>
#include <vector>

#include "ops/space.h"
#include "schedule/schedule.h"
#include "sketch/nest.h"
#include "sketch/quantities.h"

namespace tenon::sketch {

class Numbers {
 public:
  /// Of a trace of the schedule `plain`, whose choices are those of `space`. Points that agree with
  /// the trace on structural knobs have the same steps. Nullopt: a step is none of those that are
  /// followed here, or indices are no sums of multiples of loops.
  static std::optional<Numbers> Of(const Schedule& plain, const Trace& trace,
                                   const ops::Space& space, const Machine& machine);

  /// At a point of the space; valid until the next call.
  const Nest& At(const ops::Point& point);

 private:
  friend class Follower;
  explicit Numbers(Quantities quantities) : quantities_(std::move(quantities)) {}

  /// A digit of what a loop counts, and by how much it moves an index; places of quantities.
  struct Digit {
    size_t extent, inner, multiple;  // inner: iterations of the loop for one of the digit's
  };
  /// What a loop does to one dim of a touch.
  struct Move {
    size_t block, touch, loop, dim;
    int64_t stride;         // elements from one to the next of the dim
    size_t extent, weight;  // quantities: the loop's extent; what one of its iterations counts
    std::vector<Digit> digits;
  };
  struct Extent {
    size_t block, loop, quantity;
  };

  int64_t IndexAt(const Move& move, int64_t iteration) const;
  void Apply(const Move& move);

  Quantities quantities_;
  std::vector<Extent> extents_;
  std::vector<Move> moves_;  // digits of a loop from the innermost outwards
  Nest nest_;
};

}  // namespace tenon::sketch
