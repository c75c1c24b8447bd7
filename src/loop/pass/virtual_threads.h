// Loops over virtual threads: a part of bind_threads.
#pragma once

#include "loop/func.h"
#include "loop/pass/rewrite.h"

namespace tenon {

/// The body of a loop over virtual threads with the loop pushed inwards, to the statements that
/// differ between virtual threads: a real thread does the work of all of them side by side, and
/// what they have in common (a tile loaded into shared memory, a barrier) once. Memory made inside
/// that differs gets a dimension more. Null where the loop has no constant extent, or such memory
/// is touched by other than loads and stores.
Stmt InterleaveVirtualThreads(const For& loop, NameSupply* names);

}  // namespace tenon
