// A vendor's library is looked for by the first call that needs it, never at load.
#pragma once

#include <stdint.h>

#include <atomic>

#include "runtime/core/os.h"

namespace tenon::runtime {

/// Looks up functions of a library that was opened: `symbols` has their names, each ended by a zero
/// and the last by two, `functions` is where pointers to them go, one behind the other. The first
/// name that the library does not have; null where it has all.
const char* BindSymbols(void* handle, const char* symbols, void* functions);

/// What a search found, asked for by any number of threads.
class Search {
 public:
  /// What `search()` returned the first time that anybody asked.
  template <class F>
  bool Found(F search) {
    int32_t state = state_.load(std::memory_order_acquire);
    if (state == kNotYet) {
      MutexLock guard(&lock_);
      state = state_.load(std::memory_order_relaxed);
      if (state == kNotYet) {
        state = search() ? kHere : kMissing;
        state_.store(state, std::memory_order_release);
      }
    }
    return state == kHere;
  }

 private:
  enum : int32_t { kNotYet, kHere, kMissing };
  std::atomic<int32_t> state_ = kNotYet;
  uint32_t lock_ = 0;
};

}  // namespace tenon::runtime
