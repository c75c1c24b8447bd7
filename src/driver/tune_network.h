// A network as a whole, after its kernels were tuned: kernels that are faster by themselves may be
// slower beside each other, so the library that follows the log runs against the one that does not.
#pragma once

#include <optional>

#include "driver/tune.h"
#include "driver/workbench.h"

namespace tenon::driver {

/// Races both, and writes into the log which is used from now on; nullopt: both are planned alike,
/// the log knows already, or the network has sizes that are open. Errors: it cannot be compiled or
/// run, or the log cannot be written.
Expected<std::optional<NetworkRace>> RaceNetwork(const TuneOptions& options, const Machine& machine,
                                                 bool far_weights, Workbench* bench);

}  // namespace tenon::driver
