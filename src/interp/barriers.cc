#include "interp/barriers.h"

#include <algorithm>

namespace tenon::interp {

void Join(Clock* into, const Clock& other) {
  into->resize(std::max(into->size(), other.size()));
  for (size_t i = 0; i < other.size(); ++i) (*into)[i] = std::max((*into)[i], other[i]);
}

Barriers::Barriers(size_t threads) : clocks_(threads, Clock(threads, 0)) {
  for (size_t i = 0; i < threads; ++i) clocks_[i][i] = 1;
}

Clock Barriers::Release(uint32_t thread) {
  Clock out = clocks_[thread];
  ++clocks_[thread][thread];
  return out;
}

bool Barriers::Knows(uint32_t thread, const Clock& clock) const {
  const Clock& own = clocks_[thread];
  for (size_t i = 0; i < clock.size(); ++i) {
    if (own[i] < clock[i]) return false;
  }
  return true;
}

bool Barriers::Arrive(BarrierState* barrier, const Clock& knows, int64_t bytes) {
  if (barrier->missing == 0) return false;
  barrier->bytes += bytes;
  Join(&barrier->arriving, knows);
  --barrier->missing;
  EndPhase(barrier);
  return true;
}

void Barriers::Bring(BarrierState* barrier, const Clock& knows, int64_t bytes) {
  barrier->bytes -= bytes;
  Join(&barrier->arriving, knows);
  EndPhase(barrier);
}

void Barriers::EndPhase(BarrierState* barrier) {
  if (barrier->missing > 0 || barrier->bytes != 0) return;
  ++barrier->phase;
  barrier->missing = barrier->arrivals;
  Join(&barrier->passed, barrier->arriving);
}

}  // namespace tenon::interp
