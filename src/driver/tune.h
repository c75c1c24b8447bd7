// Tuning a model or a kernel on this machine: from a file to records in a log.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "driver/compile.h"
#include "support/expected.h"
#include "tune/session.h"

namespace tenon::driver {

struct TuneOptions {
  /// The model, its shapes and the target, as for compiling; `model` may also be a graph's text
  /// (graph/text.h), of a kernel or more. `output` is not read.
  CompileOptions how;
  std::string log;                          // path; made where it is not there
  std::vector<std::string> only;            // kernels by their hashes; none: all
  tune::SessionOptions session;             // from `machine` to `far_weights` all is found out
  double worker_seconds = 30;               // for one candidate, from loading to the answer
  int64_t worker_bytes = int64_t{4} << 30;  // of its data
  std::string worker;                       // tenon-measure; "": measure::FindWorker
  /// Told after each trial; null: nobody.
  std::function<void(const tune::SessionState&)> changed;
};

/// The whole network by what was found, beside the one that is planned without.
struct NetworkRace {
  double untuned_seconds = 0, ratio = 1;  // ratio: tuned over untuned
  double noise = 0;                       // of the untuned one against itself
  int64_t pairs = 0;
  bool kept = true;  // else libraries that are compiled with the log are planned without it
};

/// A group of nodes in parts, beside the whole, in the network.
struct FusionRace {
  std::string name;  // of the value that the group makes
  size_t nodes = 0;  // that stay together
  double ratio = 1;  // the network's time with the parts, over that with the whole
  double noise = 0;
  int64_t pairs = 0;
  bool taken = false;  // the parts are faster, beyond noise
};

struct TuneReport {
  tune::SessionState state;
  std::vector<std::string> left_out;  // kernels that were not tuned, with the reason
  int64_t worker_starts = 0;
  std::vector<FusionRace> fusions;     // near-ties that were raced
  std::optional<NetworkRace> network;  // where one was raced
  std::string network_trouble;         // why it could not be; "": it could
};

/// The kernels of a model that leave something open, planned without measurements. Errors: the
/// model.
Expected<tune::Tasks> KernelsOf(const CompileOptions& how);

/// Errors: the model; a target that is not this machine; the log cannot be written; no worker can
/// be started. What was measured before is in the log.
Expected<TuneReport> Tune(const TuneOptions& options, const std::atomic<bool>& stop);

}  // namespace tenon::driver
