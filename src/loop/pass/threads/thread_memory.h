// The memory that each thread has for itself, once threads are those of a launch: a part of
// bind_threads.
#pragma once

#include "loop/func.h"

namespace tenon {

/// A nest of axes and its body, with the buffers in `local` and `register` as small as one thread
/// needs them. Where a schedule gives each thread its part of a tile, indices of the tile hold the
/// thread's number; in a thread's own memory it is the same in all accesses, and is left out of
/// each dimension in which all have the same multiple of it, with the elements of other threads.
Stmt ShrinkThreadMemory(const PrimFunc& func, const Stmt& nest);

}  // namespace tenon
