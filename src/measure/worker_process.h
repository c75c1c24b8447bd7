// A worker in a process of its own (tools/tenon-measure.cc), seen from the one that asks. Whatever
// a candidate does to it is an answer; the next question starts a new one.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "measure/protocol.h"
#include "support/expected.h"

namespace tenon::measure {

struct WorkerOptions {
  std::string program;     // tenon-measure; "": FindWorker
  int64_t team = 1;        // threads of its pool
  int64_t most_bytes = 0;  // of its data; 0: no limit
  double time_limit = 30;  // seconds for one question about a candidate
  // For one without a candidate: what is computed by definition takes its time, and is nobody's
  // fault.
  double reference_limit = 900;
};

/// tenon-measure: TENON_MEASURE, or the one beside this program or the library that this code is
/// in, or in bin beside its folder. Errors: it is in none of these places.
Expected<std::string> FindWorker();

/// Not thread-safe. The worker ends with this object, or with the process.
class WorkerProcess {
 public:
  explicit WorkerProcess(WorkerOptions options) : options_(std::move(options)) {}
  ~WorkerProcess() { End(); }
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  /// Errors: a worker cannot be started, or answers what no worker does.
  Expected<RaceAnswer> Ask(const RaceRequest& request);
  int64_t starts() const { return starts_; }

 private:
  Status Start();
  void End();
  bool Send(const std::string& text);

  const WorkerOptions options_;
  pid_t process_ = -1;
  int to_ = -1, from_ = -1;
  int64_t starts_ = 0;
};

}  // namespace tenon::measure
