// The barriers of one block of threads (loop/stmt.h, BarrierOp), and what threads know of each
// other through them.
//
// Barriers order some threads and not others, so what has happened before what is told by vector
// clocks (Mattern, 1989): each thread counts its own releases, and holds of every other thread the
// latest count that it has heard of, directly or through others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace tenon::interp {

/// By thread of the block.
using Clock = std::vector<uint32_t>;
void Join(Clock* into, const Clock& other);

struct BarrierState {
  int64_t arrivals = 0;  // that end a phase; 0: not made ready yet
  int64_t missing = 0;   // of them in this phase
  int64_t bytes = 0;     // that copies still bring in it
  int64_t phase = 0;
  Clock made;              // what it was made ready with
  Clock arriving, passed;  // what those knew who arrived in this phase, and up to the one before
};

class Barriers {
 public:
  explicit Barriers(size_t threads);

  Clock& of(uint32_t thread) { return clocks_[thread]; }
  uint32_t now(uint32_t thread) const { return clocks_[thread][thread]; }
  /// What the thread has done so far is told to whoever is given the clock; what comes now is not.
  Clock Release(uint32_t thread);

  /// True when the thread has heard of all that the clock tells.
  bool Knows(uint32_t thread, const Clock& clock) const;

  BarrierState& At(uintptr_t address) { return states_[address]; }
  /// False where more arrive than were announced.
  bool Arrive(BarrierState* barrier, const Clock& knows, int64_t bytes);
  /// Bytes of a copy that was begun with this knowledge.
  void Bring(BarrierState* barrier, const Clock& knows, int64_t bytes);
  /// True when the phase with this number, modulo 2, is over.
  static bool IsOver(const BarrierState& barrier, int64_t phase) {
    return (barrier.phase - phase) % 2 != 0;
  }

 private:
  static void EndPhase(BarrierState* barrier);
  std::vector<Clock> clocks_;
  std::map<uintptr_t, BarrierState> states_;
};

}  // namespace tenon::interp
