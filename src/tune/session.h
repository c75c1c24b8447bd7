// Tuning: which kernel to try next, at which of its points, and what to make of the answer.
//
// Trials go where the whole latency is expected to gain most: to the kernel for which launches ×
// seconds × expected improvement is largest. The first trials of a kernel are its leaders, the best
// predicted points of structures that differ; the further ones those of which the corrected model
// expects most (residual_model.h). Every attempt is in the log before it runs, so a session that is
// killed goes on where it was, and what kills workers is left alone after the second time.
//
// A kernel's times hang together by ratios: the first choice is measured against itself, which
// gives its time and its noise, and each candidate against the best one so far.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "support/expected.h"
#include "tune/autotvm_log.h"
#include "tune/bench.h"
#include "tune/history.h"
#include "tune/limits.h"
#include "tune/log.h"
#include "tune/task.h"

namespace tenon::tune {

struct SessionOptions : Limits {
  double stop_gain = 0;  // ends where the whole is expected to gain less than this part of it
  std::string machine;   // the key that records get, and that counts of the log's
  std::string device;    // where kernels run; "": on this CPU
  int64_t team = 1;
  double race_seconds = 2;   // for timing one candidate
  bool far_weights = false;  // the network's weights do not stay in a core's cache
  int64_t leaders = 8;       // of a kernel
  int64_t finals = 0;        // of a kernel's best points, raced once more at the end
  // Kernels are not searched: all points are tried where they are no more than this; else so many,
  // and then the neighbours of the best (coverage.h). 0: they are searched.
  int64_t exhaustive = 0;
  int64_t neighbours_of = 16;  // of these best ones
  AutotvmLog hints;            // of other compilers: what was good there is tried first
};

/// A point in the final race of its kernel: its time over that of the kernel's best.
struct Finalist {
  std::string trace;
  double ratio = 1;
};

/// How a kernel stands.
struct TaskState {
  std::string name, kind, kernel;
  int64_t launches = 1;
  double weight = 1;  // of its sizes
  size_t points = 0;
  // Of exhaustive sessions:
  size_t sample = 0;    // points that stand for all of them; without neighbours
  size_t covered = 0;   // kernels that were tried, in all sessions; points may be the same one
  size_t distinct = 0;  // kernels that all points are; 0: some were not tried, so nobody knows
  double first_seconds = 0, best_seconds = 0;  // of one launch; 0: not measured yet
  double bound = 0;  // what one launch takes at least, by the roofline (floor.h); 0: not known
  double noise = 0;
  std::string first, best;           // traces
  int64_t trials = 0, failures = 0;  // of this session
  double gain = 0;                   // expected seconds of all launches, weighed

  double Weighed(double seconds) const { return seconds * static_cast<double>(launches) * weight; }
  std::string trouble;           // why it is not tuned any more; "": it is
  std::vector<Finalist> finals;  // the fastest first; where they were asked for
};

struct SessionState {
  std::vector<TaskState> tasks;
  int64_t trials = 0, failures = 0;
  double seconds = 0;     // since it began
  Spent spent;            // of that
  bool trees = false;     // whether trees help to choose what is tried
  int64_t relayouts = 0;  // measured
  std::string event;      // what happened last, a line
  std::string stopped;    // why it ended; "": it goes on
};

/// The state in which it ended. `changed` is told after each trial. `stop` and the limit of time
/// (which finals do not count in) end it after the one that is under way. Errors: the log cannot be
/// written, or no worker can be started; what was measured until then is in the log. `folder` takes
/// libraries while they are needed. At the end relayouts between the kernels are measured that the
/// log does not know, for a tenth of the trials' time at most, within the limit.
Expected<SessionState> RunSession(const Tasks& tasks, const Machine& machine,
                                  const SessionOptions& options, const SessionTools& tools,
                                  const std::string& folder, Log* log,
                                  const std::function<void(const SessionState&)>& changed,
                                  const std::atomic<bool>& stop);

/// The order in which a task's points are tried first: the best predicted one of each of the three
/// best layouts, between which plans choose by what was measured; then the best predicted one of
/// each structure, those that differ by more than their numbers before their neighbours; at most so
/// many.
std::vector<size_t> Leaders(const Task& task, size_t most);

}  // namespace tenon::tune
