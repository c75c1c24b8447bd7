// What computes a weight, improved and planned like a network: for the machine that compiles.
#pragma once

#include "cost/machine.h"
#include "graph/graph.h"

namespace tenon::graph {

/// A slice of a graph (PrepareSplit) whose inputs are constants and whose output is the weight.
/// Relayouts go into what computes their operand where its elements are computed one by one, so
/// that no weight is written twice; every group gets a plan. The output stays in its layout.
Graph PlanPrepare(const Graph& slice, const Machine& machine);

}  // namespace tenon::graph
