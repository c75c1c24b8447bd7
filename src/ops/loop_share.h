// How much of a loop in one kernel is a thread's.
#pragma once

#include "graph/graph.h"
#include "ops/loop_body.h"

namespace tenon::ops {

/// Finds an axis along which the body is apart and a thread has little: those of the first state
/// are tried, the longest one first, and one thread for all of it. False where there is none.
bool ChooseAxis(const graph::Graph& g, LoopBody* body);

/// How many iterations are one piece of code. Needs: ChooseAxis has found one.
int64_t IterationsTogether(const LoopBody& body);

}  // namespace tenon::ops
