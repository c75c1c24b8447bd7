// The little that the core wants from Linux: futexes, pauses, a clock, a mutex. No libstdc++ code:
// headers only.
#pragma once

#include <atomic>
#include <cstdint>

namespace tenon::runtime {

/// Sleeps while `word` holds `expected`, until woken; may return early for no reason. False where
/// so many nanoseconds went by (0: there is no end).
bool FutexWait(std::atomic<uint32_t>* word, uint32_t expected, int64_t nanoseconds = 0);
/// Wakes up to `count` sleepers on `word`. The word is named, not read: it may be gone by now.
void FutexWake(std::atomic<uint32_t>* word, int32_t count);

int64_t NanosecondsNow();

/// Tells the CPU that this is a spin loop.
inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#elif defined(__riscv)
  asm volatile(".4byte 0x100000f");  // pause; where there is none, a fence that orders nothing
#endif
}

/// Polls `done()` for about `nanoseconds`; whether it came true. It does not yield: two threads of
/// a team that yield to each other look like half a load each, and the system then leaves them on
/// one CPU for good.
template <class Predicate>
bool SpinUntil(Predicate done, int64_t nanoseconds) {
  constexpr int kPollsPerClock = 32;
  int64_t start = 0;  // the clock is first read after the first polls: most waits are shorter
  while (true) {
    for (int i = 0; i < kPollsPerClock; ++i) {
      if (done()) return true;
      Pause();
    }
    int64_t now = NanosecondsNow();
    if (start == 0) start = now;
    if (now - start >= nanoseconds) return done();
  }
}

/// A futex mutex over a zero-initialised word, so that it can live in generated data. 0 free, 1
/// held, 2 held and wanted.
class MutexLock {
 public:
  explicit MutexLock(uint32_t* word);
  ~MutexLock();
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  std::atomic<uint32_t>* word_;
};

}  // namespace tenon::runtime
