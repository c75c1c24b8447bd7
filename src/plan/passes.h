// The passes that decide how a network is computed: which nodes are one kernel, by which algorithm,
// and how values lie between kernels. They know the operator library; passes that change what is
// computed (graph/pass) do not. They have the form of all passes over graphs.
#pragma once

#include <vector>

#include "graph/pass/pass.h"

namespace tenon::graph {

/// Every pass of this folder, in the order of passes.def.
const std::vector<GraphPassInfo>& PlanPasses();
/// A pass of this folder or of graph/pass; null when there is none of that name.
const GraphPassInfo* FindAnyGraphPass(std::string_view name);

}  // namespace tenon::graph
