// A network as a whole, after its kernels were tuned. Which nodes are one kernel decides about more
// than these, so groups that cost about the same in parts are measured both ways in the network.
// And kernels that are faster by themselves may be slower beside each other, so last the library
// that follows the log runs against the one that does not.
#pragma once

#include <atomic>
#include <optional>
#include <vector>

#include "driver/tune.h"
#include "driver/workbench.h"

namespace tenon::driver {

struct NetworkRaces {
  std::vector<FusionRace> fusions;   // at most kMostFusions
  std::optional<NetworkRace> whole;  // nullopt: both are planned alike, or the log knows already
};

inline constexpr size_t kMostFusions = 10;

/// What the log says about the fusion of a network's groups, on this machine.
plan::Cuts CutsOf(const std::string& log, const Machine& machine, bool far_weights);

/// Races what is open, and writes into the log which is used from now on; nothing of networks with
/// open sizes. Near-ties in fusion are looked for and raced until so many seconds have passed, but
/// one is raced in any case. Errors: the network cannot be compiled or run, or the log cannot be
/// written; `out` has what was raced until then.
Status RaceNetwork(const TuneOptions& options, const Machine& machine, bool far_weights,
                   double fusion_seconds, Workbench* bench, const std::atomic<bool>& stop,
                   NetworkRaces* out);

}  // namespace tenon::driver
