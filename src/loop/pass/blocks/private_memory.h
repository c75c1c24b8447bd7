// What schedules say is private to the iterations of a loop, made so.
#pragma once

#include "loop/func.h"

namespace tenon {

/// The function's body with memory allocated inside every loop for the buffers that it has
/// privately (attribute `private`), which it then says no longer: its iterations, which run at the
/// same time, share nothing there. Loops inside blocks, and over threads for which the buffer is
/// memory in common, have nothing of their own; neither has a loop that names what is not allocated
/// around it.
Stmt GivePrivateMemory(const Func& func);

}  // namespace tenon
