// Weights that are computed from weights: the prepare functions, compiled for this machine and run
// straight into the file.
#pragma once

#include <functional>

#include "artifact/weight_sink.h"
#include "graph/lower/lower.h"
#include "support/expected.h"

namespace tenon::driver {

struct PrepareOptions {
  int jobs = 1;
  bool verify_each = false;  // as CompileOptions
};

/// Writes every weight of the network to its place: copies, and what prepare functions compute.
/// Source pages are released as it goes, so that memory holds one weight at a time.
Status WriteWeights(const graph::LoweredNetwork& network, const Target& build_host,
                    const PrepareOptions& options, artifact::WeightSink* writer,
                    const std::function<void(int64_t, int64_t)>& progress);

}  // namespace tenon::driver
