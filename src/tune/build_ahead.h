// Candidates that are lowered and built before their turn, while others run. Threads of its own
// take them in the order in which they were asked for; what comes of one waits for whoever asked.
//
// Where kernels run on this CPU nothing is done ahead: a compiler beside a race is what it would
// measure. Then all of it happens when the candidate's turn comes.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "loop/func.h"
#include "measure/protocol.h"
#include "support/expected.h"

namespace tenon::tune {

/// A kernel's code before passes, and its parameters.
struct LoweredCandidate {
  Module module;  // exports `kFunction`
  std::vector<measure::Parameter> parameters;
};
inline constexpr const char* kFunction = "kernel";
using Lowering = std::function<Expected<LoweredCandidate>()>;

/// A library, in memory.
struct BuiltCandidate {
  std::string image;
  std::vector<measure::Parameter> parameters;
};

/// Where schedules are made: by whoever builds, or in the thread that asks, at once. Templates and
/// rules of users are theirs and some are Python's, so they stay in the session's thread.
enum class LoweredBy { kBuilder, kCaller };

/// A candidate under way; empty by default. Belongs to one thread, and must not be asked after the
/// BuildAhead that it is from is gone.
class Building {
 public:
  Building() = default;
  explicit operator bool() const { return image_.valid(); }
  /// Which kernel it is (same_kernels.h): waits until it is lowered, or does that then. Errors: of
  /// its schedule.
  Expected<std::string> Identity() const;
  /// The library: waits for it, or builds it then. Errors: of its schedule, or of building.
  Expected<BuiltCandidate> Wait() const;

 private:
  friend class BuildAhead;
  using Lowered = std::shared_future<Expected<LoweredCandidate>>;
  using Image = std::shared_future<Expected<std::string>>;
  Building(Lowered lowered, Image image) : lowered_(std::move(lowered)), image_(std::move(image)) {}

  Lowered lowered_;
  Image image_;
};

class BuildAhead {
 public:
  /// A library of the module; called from several threads at once where there are some.
  using Build = std::function<Expected<std::string>(const Module& module)>;
  using Identity = std::shared_future<Expected<std::string>>;

  /// `threads`: that lower and build; 0: whoever asks, when he wants it.
  BuildAhead(Build build, int threads);
  /// What was not begun is not built; waits for the rest.
  ~BuildAhead();
  BuildAhead(const BuildAhead&) = delete;
  BuildAhead& operator=(const BuildAhead&) = delete;

  /// Where builders lower, `lower` is called by one of several threads, or when it is asked for.
  Building Start(Lowering lower, LoweredBy by = LoweredBy::kBuilder);
  /// Which kernel it is, of what is not to be built.
  Identity Identify(Lowering lower);
  int threads() const { return static_cast<int>(threads_.size()); }

 private:
  void Work();
  void Post(std::function<void()> job);

  const Build build_;
  std::mutex mutex_;
  std::condition_variable some_;
  std::deque<std::function<void()>> waiting_;
  bool over_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace tenon::tune
