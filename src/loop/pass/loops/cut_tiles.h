// cut_tiles: a register tile that a dim cuts short has code for each number of rows.
//
// Needs: blocks are lowered; split_guards has given tiles that are whole a version of their own.
// Ensures: nothing new is computed, in no other order. Where the rows of a register tile (the loops
// that are to be unrolled) run under guards `row < rest`, and the rest depends on the function's
// dims, the tile is written out for a rest of 1, 2, … rows and a branch takes the right one: inside
// a number of rows is a constant, so there are neither guards nor rows that nobody wants, and a
// tile without rows does nothing. Vectors, whose guards are `vector · width + lane < rest`, are cut
// in the same way; the last one keeps its guard, as a mask. A tile may be cut both ways. Sizes that
// are numbers leave no such guards. Copies count against
// PassContext::max_unrolled_stmts; beyond it guards stay. Why after split_guards: it tells what is
// cut from what is whole. Why before outline_micro_kernels: tiles of a network that are cut to the
// same number of rows are one function.
#pragma once

#include "loop/pass/pass.h"

namespace tenon {

Module CutTiles(const Module& module, const PassContext& context);

}  // namespace tenon
