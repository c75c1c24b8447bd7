// Shared memory that nobody distributed is filled by all threads of a block together: a part of
// bind_threads.
#pragma once

#include <set>
#include <string>

#include "loop/pass/threads/place_syncs.h"

namespace tenon {

/// Names of buffers in `shared`.
struct SharedFills {
  std::set<std::string> together;  // filled by all threads
  std::set<std::string> alone;     // by loops of one thread, while the others wait
};

/// Finds loops bound to no thread that fill `shared` memory (shared_nest.h), and gives their
/// iterations to the threads of the block, in order, over loops of their own over the axes of the
/// launch. Axes whose loops around do other things there in each iteration stay as they are: those
/// threads share the work with those along the other axes. Loops that cannot be dealt out stay too.
Stmt ShareLoads(const PrimFunc& func, const Module& module, const AxisExtents& extents,
                SharedFills* fills);

}  // namespace tenon
