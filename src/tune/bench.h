// One kernel on the bench: candidates are built, raced against the best one so far, and recorded.
// An attempt that may kill is in the log before it runs. A kernel's times hang together by ratios:
// the first choice runs against itself, which gives its time and its noise, and each candidate
// against the incumbent, whose library stays in the folder.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "measure/protocol.h"
#include "support/expected.h"
#include "tune/build_ahead.h"
#include "tune/log.h"
#include "tune/record.h"

namespace tenon::tune {

/// What measuring needs from outside: both may fail for one candidate without ending a session.
struct SessionTools {
  /// A library of the module for this machine, in memory.
  BuildAhead::Build build;
  /// Threads that lower and build candidates while others run; 0: nothing is done meanwhile.
  int builders = 0;
  /// Errors end the session: no worker can be started.
  std::function<Expected<measure::RaceAnswer>(const measure::RaceRequest&)> race;
};

/// Where the time of a session went.
struct Spent {
  double building = 0;    // waiting for candidates to be built
  double references = 0;  // computing by definition what answers are compared with
  double bursts = 0;      // timing pairs
};

/// How candidates of all kernels of a session are measured.
struct BenchOptions {
  const SessionTools* tools = nullptr;
  std::string folder;            // takes libraries while they are needed
  Log* log = nullptr;            // null: nothing is recorded
  std::string device;            // where kernels run; "": on this CPU
  int64_t team = 1;              // threads of a call
  double race_seconds = 2;       // for timing one candidate
  int64_t* libraries = nullptr;  // names of libraries are counted here
  Spent* spent = nullptr;        // is added to
};

class Bench {
 public:
  Bench(BenchOptions options, std::string kernel)
      : options_(std::move(options)), kernel_(std::move(kernel)) {}

  /// Runs what answers are compared with, once. Errors: it cannot be built, or does not run.
  Status SetReference(const Building& reference);
  bool has_reference() const { return !reference_.path.empty(); }
  /// An attempt begins, before anything is done for it: its record is in the log from now on.
  /// Attempts that begin when they are made need not be announced.
  Status Announce(Record* record);
  /// It will not be made.
  Status Withdraw(const Record& record);
  /// A candidate that runs against itself and becomes the incumbent. `record` says what it is
  /// about, and gets what came of it: with outcome "ok" its seconds, which are those that the log
  /// has of it where `known` is not 0.
  Status Open(const Building& candidate, double known, Record* record);
  /// A candidate against the incumbent; a record that is a leader says that it is that now.
  Status Try(const Building& candidate, Record* record);

  /// The logarithm of a candidate's time over the incumbent's, which stays what it is; nothing is
  /// recorded. For what ran before: errors where it does not this time.
  Expected<double> Compare(const Building& candidate);

  bool is_open() const { return open_; }
  double seconds() const { return seconds_; }  // of the incumbent; 0: there is none
  double noise() const { return noise_; }

 private:
  Expected<measure::Program> Written(const Building& building);
  Expected<measure::RaceAnswer> Race(const measure::Program& candidate, int64_t pairs);
  Expected<measure::RaceAnswer> Attempt(const Building& building, int64_t pairs, Record* record,
                                        measure::Program* program);
  Status Finish(const Record& record);

  const BenchOptions options_;
  const std::string kernel_;
  measure::Program reference_, incumbent_;
  std::string results_;  // the file that keeps what the reference computed
  bool open_ = false;
  double seconds_ = 0, noise_ = 0;
};

}  // namespace tenon::tune
