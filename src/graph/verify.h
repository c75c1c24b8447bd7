// The graph verifier: a list of rules.
#pragma once

#include "graph/graph.h"

namespace tenon::graph {

/// The largest end that a dim may have: what an address can count. One that nobody bounded ends at
/// Dim::kNoMax.
inline constexpr int64_t kLargestSize = (int64_t{1} << 47) - 1;

/// Checks every rule and reports all violations (at most 20), each naming its node or value:
///
/// - ids: every id is in range; producers and outputs agree; inputs and constants have no producer.
/// - order: values are produced before they are used; outputs exist.
/// - names: graph inputs, and graph outputs, have distinct names; nothing is longer than the
///   limits.
/// - dims: symbolic dims are declared, distinct, with sane ranges, and appear in an input's type.
/// - attributes: complete, of the row's types and choices; arity as the row says.
/// - types: each result's type is what the type rule infers; only tensors are computed with.
/// - payloads: a constant's bytes are as many as its type needs.
/// - regions: they verify too, and fit the node (ops.def); control flow is plain at its borders; a
///   fused node's roles and anchor fit, and no region is in it.
Status Verify(const Graph& g);

}  // namespace tenon::graph
