#include "sketch/numbers.h"

#include <algorithm>

#include "sketch/digits.h"

namespace tenon::sketch {

// The index after so many iterations, from 0.
int64_t Numbers::IndexAt(const Move& move, int64_t iteration) const {
  const int64_t count =
      move.weight == CountedLoop::kNone ? iteration : iteration * quantities_[move.weight];
  int64_t index = 0;
  for (const Digit& digit : move.digits)
    index += quantities_[digit.multiple] *
             (count / quantities_[digit.inner] % quantities_[digit.extent]);
  return index;
}

void Numbers::Apply(const Move& move) {
  Touch& t = nest_.blocks[move.block].touches[move.touch];
  const int64_t last = quantities_[move.extent] - 1;
  int64_t& span = t.spans[move.loop * t.shape.size() + move.dim];
  int64_t low = 0, high = 0, first = 0;
  if (move.digits.size() == 1 && move.weight == CountedLoop::kNone &&
      quantities_[move.digits[0].inner] == 1 && quantities_[move.digits[0].extent] > last) {
    first = quantities_[move.digits[0].multiple];
    (first < 0 ? low : high) = first * last;
  } else {
    first = IndexAt(move, 1);
    for (const int64_t at : {std::min<int64_t>(1, last), last / 2, last}) {
      const int64_t index = IndexAt(move, at);
      low = std::min(low, index);
      high = std::max(high, index);
    }
  }
  span = std::min(high - low, t.shape[move.dim] - 1);
  if (last > 0) t.steps[move.loop] += first * move.stride;
}

const Nest& Numbers::At(const ops::Point& point) {
  quantities_.MoveTo(point);
  for (const Extent& e : extents_)
    nest_.blocks[e.block].loops[e.loop].extent = quantities_[e.quantity];
  for (const Move& m : moves_) nest_.blocks[m.block].touches[m.touch].steps[m.loop] = 0;
  for (const Move& m : moves_) Apply(m);
  return nest_;
}

}  // namespace tenon::sketch
