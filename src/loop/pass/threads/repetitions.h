// What a loop over threads would do the same in each iteration: a part of bind_threads.
#pragma once

#include "loop/func.h"
#include "loop/rewrite.h"

namespace tenon {

/// The attribute of a loop of one iteration whose body is done once for a block of threads, not by
/// each thread along an axis; its value is the axis's rank (loop/threads.h).
inline constexpr char kOnceAttr[] = "once";
/// -1: no such loop.
int OnceRank(const For& loop);

/// Marks, inside loops over threadIdx axes, statements that write `shared` memory alone and do the
/// same in every iteration: their operands do not differ, nor does whether they run. Were they left
/// to every thread, each would write what another may still read.
Stmt MarkRepetitions(const Stmt& body, const Module& module, NameSupply* names);

}  // namespace tenon
