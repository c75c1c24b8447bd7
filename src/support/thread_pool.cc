#include "support/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "support/stop.h"

namespace tenon {

int AvailableCpus() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void ParallelFor(int64_t n, int jobs, const std::function<void(int64_t)>& fn) {
  std::atomic<int64_t> next = 0;
  std::atomic<bool> failed = false;
  std::mutex mutex;
  int64_t failed_index = n;
  std::exception_ptr failure;

  // Every index below a failing one was started before it, so the lowest failing index is always
  // found.
  auto work = [&] {
    while (!failed.load(std::memory_order_relaxed)) {
      const int64_t index = next.fetch_add(1, std::memory_order_relaxed);
      if (index >= n) return;
      try {
        PollStop();
        fn(index);
      } catch (...) {
        std::lock_guard lock(mutex);
        failed = true;
        if (index < failed_index) {
          failed_index = index;
          failure = std::current_exception();
        }
      }
    }
  };

  StopRequest* const asked_for = CurrentStop();
  const auto help = [&] {
    const StopScope scope(asked_for);
    work();
  };
  const int64_t helpers = std::min<int64_t>(jobs, n) - 1;
  std::vector<std::jthread> threads;
  for (int64_t i = 0; i < helpers; ++i) {
    try {
      threads.emplace_back(help);
    } catch (const std::system_error&) {
      break;  // the machine gives no more threads: fewer do the same work
    }
  }
  work();
  threads.clear();  // joins
  if (failure) std::rethrow_exception(failure);
}

}  // namespace tenon
