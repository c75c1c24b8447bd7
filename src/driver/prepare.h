// Weights that are computed from weights: the prepare functions, compiled for this machine and run
// straight into the file.
#pragma once

#include <functional>

#include "artifact/library_writer.h"
#include "graph/lower/lower.h"
#include "support/expected.h"

namespace tenon::driver {

/// Writes every weight of the network to its place: copies, and what prepare functions compute.
/// Source pages are released as it goes, so that memory holds one weight at a time.
Status WriteWeights(const graph::LoweredNetwork& network, const Target& build_host, int jobs,
                    artifact::LibraryWriter* writer,
                    const std::function<void(int64_t, int64_t)>& progress);

}  // namespace tenon::driver
