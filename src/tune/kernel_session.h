// Tuning one kernel whose spaces are too large to list: a template of a user's, or the sketches of
// a function (src/sketch). A searcher says what to try, the bench measures it, the log remembers.
#pragma once

#include <atomic>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tune/bench.h"
#include "tune/limits.h"
#include "tune/search.h"

namespace tenon::tune {

/// What is tuned. What it holds is asked for from one thread.
struct OpenKernel {
  std::string name;
  std::string text;     // what it computes; its hash is problem.kernel
  std::string machine;  // the key that records get
  std::string target;
  int epoch = 1;  // of what makes its schedules; records of another one do not count
  SearchProblem problem;
  std::function<Expected<LoweredCandidate>(const Pick&)> lower;
  /// Whether `lower` may be called by several threads at once, whichever they are.
  bool lowers_anywhere = false;
  Lowering reference;  // null: answers are not compared
};

/// A pick, and what came of it.
struct Trial {
  Pick pick;
  Record record;
};

struct KernelOptions : Limits {
  KernelOptions() { trials = 64; }
  int64_t batch = 8;  // trials between two questions to the searcher
  /// Whether the searcher may be asked before it knows what became of its last batch, so that there
  /// is always something to build.
  bool asks_early = false;
  std::set<std::string> suspects;  // traces that were under way when a session or a worker died
  BenchOptions bench;
};

struct KernelState {
  int64_t trials = 0, failures = 0;
  double seconds = 0;
  Pick best;
  double best_seconds = 0;  // 0: nothing worked
  std::string stopped;
};

/// Records of an earlier session of this kernel as picks; those that are no points are left out.
/// `suspects` (null: nobody asks) gets the traces that were under way at a death.
std::vector<Trial> TrialsOf(const LogContents& contents, const OpenKernel& kernel, int64_t team,
                            std::set<std::string>* suspects = nullptr);

/// Measures what the searcher asks for. `before` is known already and is told to the searcher; the
/// best of it is opened first. `done` is told of each trial. Errors: the log cannot be written, or
/// no worker can be started; the definition cannot be built.
Expected<KernelState> TuneKernel(const OpenKernel& kernel, Searcher* searcher,
                                 const KernelOptions& options, const std::vector<Trial>& before,
                                 const std::function<void(const Trial&, const KernelState&)>& done,
                                 const std::atomic<bool>& stop);

/// The parameters of a function whose buffers are compact; errors: sizes are open, or elements of a
/// type that is not measured.
Expected<std::vector<measure::Parameter>> ParametersOf(const PrimFunc& func);

}  // namespace tenon::tune
