// What is left to one block where blocks wait for each other: a part of bind_threads.
#pragma once

#include "loop/func.h"
#include "loop/rewrite.h"

namespace tenon {

/// The body with loops of one iteration over the axis around what stands outside of all loops over
/// it: neighbouring statements that write memory which blocks share, or a block's threads, with all
/// that they do to a thread's own. The first block along the axis does them, threads and all. Where
/// a thread's own memory is used elsewhere too, every block needs it, and the statements stay. A
/// body without loops over the axis stays as it is.
Stmt LeaveToFirstBlock(const Stmt& body, const Module& module, size_t axis, NameSupply* names);

}  // namespace tenon
