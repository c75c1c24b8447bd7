// Constants of a build: copies, and what is computed from weights alone.
#pragma once

#include <functional>
#include <vector>

#include "artifact/weight_sink.h"
#include "graph/lower/lower.h"
#include "schedule/schedule.h"
#include "support/expected.h"

namespace tenon::driver {

struct Built;

struct Weights {
  std::vector<graph::Weight> list;
  uint64_t bytes = 0;  // of the segment that they lie in
  /// The host functions that weights name, with their kernels: a module like any other, for this
  /// machine.
  Module prepare;
  std::function<Expected<Schedule>(const Func& kernel)> schedule;  // of its kernels
};

/// Writes every weight of a build to its place. `prepare` is built, loaded into this process and
/// run straight into the file. Source pages are released as it goes, so that memory holds one
/// weight at a time.
Status WriteWeights(const Built& built, artifact::WeightSink* writer);

}  // namespace tenon::driver
