// lower_blocks: blocks become plain statements.
//
// Needs: scheduling is done; compact_buffers has used the regions that blocks declare.
// Ensures: no Block at thread level is left. Its iteration variables are replaced by their
// bindings; `init` stands before the body, under an `if` that all reduce (and ordered) variables
// are at the start of their domains, and in front of the loops of a reduction whose domain may be
// empty, under an `if` that it is; `where` is an `if` around both; conditions that always hold
// are gone. The block's floating-point freedom is spent here: under `fp: contract` or `reassoc`, a
// * b + c of floats becomes fma where the target has it, so what follows (back ends, interpreter)
// needs no flags and agrees to the last bit. Other reassociation is only ever done by vectorize on
// a reduction, which the reduce variable itself permits. Blocks above thread level and async blocks
// stay for the passes of their targets. Why here: everything later works on statements; everything
// before needs what blocks declare.
#pragma once

#include "loop/pass/pass.h"

namespace tenon {

Module LowerBlocks(const Module& module, const PassContext& context);

}  // namespace tenon
