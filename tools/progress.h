// How a compilation's progress is shown on stderr: one line that is overwritten on a terminal, a
// line per finished phase elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace tenon::tools {

class Progress {
 public:
  enum class Lines { kNone, kPhases, kPhasesWithTimes };  // where stderr is not a terminal
  explicit Progress(Lines lines);
  ~Progress() { Clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Phase `phase` has done `done` of `total` pieces; thread-safe. done == 0 begins it.
  void Show(const std::string& phase, int64_t done, int64_t total);
  /// Takes the line away, so that something else can be printed.
  void Clear();

 private:
  using Clock = std::chrono::steady_clock;
  void Finish(const std::string& phase);

  bool terminal_;
  Lines lines_;
  std::mutex mutex_;
  std::map<std::string, Clock::time_point> begun_;  // phases that have not finished
};

}  // namespace tenon::tools
