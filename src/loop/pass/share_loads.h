// Shared memory that nobody distributed is filled by all threads of a block together: a part of
// bind_threads.
#pragma once

#include <string>
#include <vector>

#include "loop/func.h"

namespace tenon {

/// Finds, inside loops over threadIdx axes, nests of serial loops that fill `shared` memory the
/// same for every thread (they do not name the thread, and write each element once), and gives
/// their iterations to the threads of those loops, in order, over loops of their own over the same
/// axes. The names of what is filled so are appended to `filled`. Nests that it does not
/// understand stay as they are: then one thread does them.
Stmt ShareLoads(const PrimFunc& func, const Module& module, std::vector<std::string>* filled);

}  // namespace tenon
