// Rates of several threads at the same moment.
#pragma once

#include <numeric>
#include <thread>
#include <vector>

namespace tenon::bench {

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
