// The passes over graphs, in order, as data.
#pragma once

#include <functional>
#include <string_view>

#include "cost/machine.h"
#include "driver/compile.h"
#include "graph/graph.h"
#include "plan/prices.h"

namespace tenon::driver {

struct GraphHooks {
  std::function<void(const char* pass, const graph::Graph& before, const graph::Graph& after,
                     double seconds)>
      after_pass;
};

/// Whether these options run the pass: it is in the pipeline at their level, and not disabled.
bool RunsPass(std::string_view pass, const CompileOptions& options);

/// `prices`: what has been measured (measured_prices.h); null: nothing.
Expected<graph::Graph> RunGraphPasses(graph::Graph g, const Machine& machine,
                                      const CompileOptions& options, const plan::Prices* prices,
                                      const GraphHooks& hooks);

}  // namespace tenon::driver
