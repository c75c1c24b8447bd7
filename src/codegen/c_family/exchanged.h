// Memory by which the threads of a function speak to each other.
#pragma once

#include <unordered_set>

#include "loop/func.h"

namespace tenon::codegen {

/// The buffer parameters that a function with barriers both reads and writes: what one thread, or
/// worker, reads after a barrier another may have written before it. A promise that no other
/// pointer leads there (`restrict`, noalias) says to compilers that nobody else does, so that they
/// use what was read before the barrier; it must not be made.
std::unordered_set<const BufferNode*> ExchangedBuffers(const PrimFunc& func);

}  // namespace tenon::codegen
