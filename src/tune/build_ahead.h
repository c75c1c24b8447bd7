// Candidates that are built before their turn, while others run. Threads of its own take modules in
// the order in which they were asked for; what comes of one waits for whoever asked. Schedules are
// made in the caller's thread: templates of users are theirs.
//
// Where kernels run on this CPU nothing is built ahead: a compiler beside a race is what it would
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
/// Called once: waits for it, or builds it then. Errors: of its schedule, or of building.
using Building = std::function<Expected<BuiltCandidate>()>;

class BuildAhead {
 public:
  /// A library of the module; called from several threads at once where there are some.
  using Build = std::function<Expected<std::string>(const Module& module)>;

  /// `threads`: that build; 0: whoever asks, when he wants it.
  BuildAhead(Build build, int threads);
  /// What was not begun is not built; waits for the rest.
  ~BuildAhead();
  BuildAhead(const BuildAhead&) = delete;
  BuildAhead& operator=(const BuildAhead&) = delete;

  /// What is returned must not be called after this object is gone.
  Building Start(const Lowering& lower);
  int threads() const { return static_cast<int>(threads_.size()); }

 private:
  using Image = Expected<std::string>;
  void Work();

  const Build build_;
  std::mutex mutex_;
  std::condition_variable some_;
  std::deque<std::packaged_task<Image()>> waiting_;
  bool over_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace tenon::tune
