// Where the threads of a block must wait for each other: a part of bind_threads.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "loop/func.h"
#include "loop/threads.h"

namespace tenon {

/// Extents of the axes of a launch, by AxisRank; null: the kernel has no such axis.
using AxisExtents = std::array<Expr, kNumAxes>;

struct SyncPlan {
  Stmt body;                         // with barriers added
  std::vector<std::string> refused;  // what no barrier can order, and why
};

/// Adds barriers to a body in which loops over thread axes still stand where the schedule has
/// them.
///
/// Iterations of one such loop are independent, by what the loop means. So threads depend on each
/// other only between two loops over the same axis (or the same one in two iterations of a loop
/// around it), where one writes what the other touches. There, it is tried to show from the indices
/// that equal elements mean equal threads: an index from which the thread's number can be read off
/// by division and remainder. Within one loop they do where an access is atomic, which says that
/// others touch the element, or where two numbers of iterations are found that an element is
/// touched by: a promise of independence does not hold against that. One element written by all
/// iterations, each with a value of its own, is refused. Barriers stand between two statements, and
/// at the end of a loop whose next iteration depends on this one; never under a condition or in a
/// loop that threads see differently, unless the condition can be moved inwards (it loads nothing).
///
/// Threads of one block meet at `sync cta`, where no less will do those of one cluster at `sync
/// cluster`, and in a cooperative launch all at `sync grid`: of global memory alone, whose
/// conditions and bounds load nothing.
SyncPlan PlaceSyncs(const PrimFunc& func, const Module& module, const Stmt& body,
                    const AxisExtents& extents, bool cooperative = false);

/// True for memory that each thread has for itself.
bool IsThreadPrivate(const BufferNode& buffer);

/// The level of the barrier of most threads in the statement; none: it holds no barrier.
std::optional<Level> HighestSync(const Stmt& stmt);
bool HasSync(const Stmt& stmt);

}  // namespace tenon
