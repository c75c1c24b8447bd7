// Rates of threads in their own time, and of several at the same moment.
#pragma once

#include <time.h>

#include <numeric>
#include <thread>
#include <vector>

namespace tenon::bench {

/// Of this thread: time that others take the core for is not the core's.
inline double ThreadSeconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// The sum of what `rate()` gives on each of `threads` threads at the same time, the caller's being
/// one.
template <typename Rate>
double SumOverThreads(int threads, const Rate& rate) {
  std::vector<double> rates(static_cast<size_t>(threads));
  std::vector<std::thread> workers;
  for (size_t t = 1; t < rates.size(); ++t) {
    workers.emplace_back([&rates, &rate, t] { rates[t] = rate(); });
  }
  rates[0] = rate();
  for (std::thread& w : workers) w.join();
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

}  // namespace tenon::bench
