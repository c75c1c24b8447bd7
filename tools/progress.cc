#include "progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include "console.h"

namespace tenon::tools {

Progress::Progress(Lines lines) : terminal_(isatty(STDERR_FILENO) != 0), lines_(lines) {}

void Progress::Show(const std::string& phase, int64_t done, int64_t total) {
  std::lock_guard lock(mutex_);
  begun_.try_emplace(phase, Clock::now());
  if (terminal_) {
    std::string count = total > 1 ? fmt::format(" {}/{}", done, total) : "";
    WriteError("\r\033[K" + Harmless(phase) + count + " …");
  }
  // A phase of many pieces is also reported as a whole, as 1 of 1.
  if (done == 1 && total == 1) Finish(phase);
}

void Progress::Finish(const std::string& phase) {
  std::chrono::duration<double> seconds = Clock::now() - begun_[phase];
  begun_.erase(phase);
  if (terminal_) return;
  if (lines_ == Lines::kPhases) PrintError("{}\n", phase);
  if (lines_ == Lines::kPhasesWithTimes) {
    PrintError("{:<8} {:8.2f} s\n", phase, seconds.count());
  }
}

void Progress::Clear() {
  if (!terminal_) return;
  WriteError("\r\033[K");
}

}  // namespace tenon::tools
