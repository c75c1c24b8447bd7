// What ends `compile` early: a signal, or a limit. Either way no temporary file stays behind.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "support/expected.h"
#include "verbs.h"

namespace tenon::tools {

/// Lets SIGINT, SIGTERM, SIGHUP and SIGPIPE remove the temporary files of outputs and then end the
/// process as they would have. A mapped file that becomes shorter under us, and a file that may not
/// grow, are errors like others.
void RemoveOutputsOnSignals();

/// Bytes of "512M", "2G", "1.5g", "800k" or "1000000"; time in seconds of "90", "90s", "5m", "1h".
Expected<int64_t> ParseBytes(const std::string& text);
Expected<double> ParseSeconds(const std::string& text);

/// Watches the process while it exists: beyond a limit it removes the temporary files, prints which
/// limit it was and exits with kLimitHit. Checks every few milliseconds, so memory may go over by
/// what can be touched in that time.
class Watchdog {
 public:
  /// 0: no such limit. Memory is what is resident, file pages included.
  Watchdog(int64_t max_bytes, double max_seconds, const Common& common);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void Watch();
  [[noreturn]] void Leave(const std::string& message) const;

  const Common& common_;
  const int64_t max_bytes_;
  const double max_seconds_;
  std::mutex mutex_;
  std::condition_variable stop_signal_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace tenon::tools
