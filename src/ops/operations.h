// How much there is to compute.
#pragma once

#include "graph/graph.h"

namespace tenon::ops {

/// Arithmetic operations of one node, by its definition, a multiply-add counting two, at typical
/// sizes.
double OperationsOf(const graph::Graph& g, const graph::Node& node);

}  // namespace tenon::ops
