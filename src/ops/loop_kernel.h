// Loops of a graph as one kernel: a thread for each part of the state that never needs another.
#pragma once

#include "graph/graph.h"
#include "ops/kernel.h"
#include "support/expected.h"

namespace tenon::ops {

class Group;

/// Whether a `loop` node, alone in its region, can be one kernel: along one axis of what it carries
/// no element ever needs another one's, so that a thread takes one place of that axis through all
/// iterations, with its part of the state in registers; or one thread takes all of it, where that
/// is little. So is what a thread does in an iteration.
bool FitsOneKernel(const graph::Graph& region);

/// That kernel. Needs: FitsOneKernel, and a machine whose threads run together.
Expected<Kernel> BuildLoop(const KernelRequest& request, const Group& group);

}  // namespace tenon::ops
