// What was measured, where a compilation names a file of it: a log of tuning, or prices by hand.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "cost/machine.h"
#include "driver/compile.h"
#include "graph/graph.h"
#include "support/expected.h"
#include "tune/history.h"

namespace tenon::driver {

struct MeasuredPrices {
  std::unique_ptr<plan::Prices> prices;  // null: planning asks its model alone
  const tune::LogPrices* log = nullptr;  // the same, where it is a log
};
/// Of the options' log or prices, for a network whose weights are far or near (source.h). What of a
/// log is passed over is said to `warn`. Errors: files that cannot be read; both are named.
Expected<MeasuredPrices> ReadPrices(const CompileOptions& options, const Machine& machine,
                                    bool far_weights);

/// What planned graphs say, as one hash.
std::string PlanKey(std::span<const graph::Graph> planned);
/// What a network that is planned by a log may take of the time of one that is not.
inline constexpr double kMostOfUntuned = 1 / 0.99;

/// The records that planned graphs follow: {node, kernel, point, measured_us, record} for each
/// node.
nlohmann::ordered_json RecordsUsed(const tune::LogPrices& log,
                                   std::span<const graph::Graph> graphs);

}  // namespace tenon::driver
