// A planned group by itself: what its kernel is, without the network around it.
#pragma once

#include <string>

#include "cost/machine.h"
#include "graph/graph.h"
#include "loop/func.h"
#include "support/expected.h"

namespace tenon::graph {

/// The kernel of a node (one of KernelNodes), scheduled as its plan says, or by its definition; a
/// module of it and what its schedule outlined. It is the network's kernel, exported by the name:
/// its parameters are the group's operands (but built-in scalars), then its results, each as it is
/// stored, with borders and padding, which hold zeros. What the graph is given or gives is aligned
/// to its element, everything else to 64 bytes. Errors as ops::BuildKernel and its schedule.
Expected<Module> LowerGroup(const Graph& g, NodeId node, const Machine& machine,
                            const std::string& name = "kernel");

}  // namespace tenon::graph
