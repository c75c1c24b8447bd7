#include "runtime/core/os.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace tenon::runtime {

bool FutexWait(std::atomic<uint32_t>* word, uint32_t expected, int64_t nanoseconds) {
  int saved = errno;  // a library call must not disturb its caller's errno
  const timespec span = {nanoseconds / 1000000000, nanoseconds % 1000000000};
  const long status = syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected,
                              nanoseconds > 0 ? &span : nullptr, nullptr, 0);
  const bool in_time = status == 0 || errno != ETIMEDOUT;
  errno = saved;
  return in_time;
}

void FutexWake(std::atomic<uint32_t>* word, int32_t count) {
  int saved = errno;
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
  errno = saved;
}

int64_t NanosecondsNow() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

MutexLock::MutexLock(uint32_t* word) : word_(reinterpret_cast<std::atomic<uint32_t>*>(word)) {
  uint32_t expected = 0;
  if (word_->compare_exchange_strong(expected, 1, std::memory_order_acquire)) return;
  while (word_->exchange(2, std::memory_order_acquire) != 0) FutexWait(word_, 2);
}

MutexLock::~MutexLock() {
  if (word_->exchange(0, std::memory_order_release) == 2) FutexWake(word_, 1);
}

}  // namespace tenon::runtime
