// Work that whoever asked for it may end early. Long computations look from time to time (PollStop)
// whether they are still wanted; what they do is on the stack, so an exception ends them.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

namespace tenon {

/// Thrown by PollStop; no std::exception, so that nobody takes it for a fault.
struct Stopped {};

/// Who asks for work, and how to find out whether he still wants it.
class StopRequest {
 public:
  /// `ask` is called on this thread alone, a few times a second.
  explicit StopRequest(std::function<bool()> ask);
  /// On the thread that made this: asks, where that was not done just now. Whether to stop.
  bool Ask();

 private:
  const std::function<bool()> ask_;
  const std::thread::id owner_;
  std::chrono::steady_clock::time_point asked_;
  std::atomic<bool> stopped_ = false;
};

/// While it lives, what this thread does is for that request. Threads that help say so themselves
/// (ParallelFor and OnDeepStack do). Null: for none.
class StopScope {
 public:
  explicit StopScope(StopRequest* request);
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;
  ~StopScope();

 private:
  StopRequest* const before_;
};

/// What this thread works for, or null.
StopRequest* CurrentStop();
/// Throws Stopped where it is not wanted any more.
void PollStop();

}  // namespace tenon
