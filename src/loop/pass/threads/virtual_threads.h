// Loops over virtual threads: a part of bind_threads.
#pragma once

#include <unordered_set>

#include "loop/func.h"
#include "loop/rewrite.h"

namespace tenon {

using BufferSet = std::unordered_set<const BufferNode*>;

/// The body of a loop over virtual threads with the loop pushed inwards, to the statements that
/// differ between virtual threads: a real thread does the work of all of them side by side, and
/// what they have in common (a tile loaded into shared memory, a barrier) once. Memory made inside
/// that differs gets a dimension more; `made` is all that the function makes. Null where the loop
/// has no constant extent, such memory is touched by other than loads and stores, or memory made
/// outside may hold another value for each: then one must follow the other.
Stmt InterleaveVirtualThreads(const For& loop, const BufferSet& made, NameSupply* names);

}  // namespace tenon
