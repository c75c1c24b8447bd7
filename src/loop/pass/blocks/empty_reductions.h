// What a reduction leaves where there is nothing to reduce.
#pragma once

#include "loop/func.h"

namespace tenon {

/// `init` runs at a reduction's first iteration, and one whose domain is empty has none. In front
/// of the loops of each reduction whose domain may be empty (for all that the function's dims
/// say), its `init` over the elements that it would make, under an `if` that it is. Where
/// threads share out these loops, they share out the elements of `init` likewise.
Func InitializeEmptyReductions(const Func& func);

}  // namespace tenon
