// Which functions can compute their indices in 32 bits: half the registers and a quarter of the
// instructions on a GPU.
#pragma once

#include "loop/func.h"

namespace tenon::codegen {

/// Whether every index expression of the function, and every sum within one, is proved to fit a
/// signed 32-bit integer for all dims in their ranges. Scalar parameters of type index have none.
bool IndicesFit32(const PrimFunc& func);

}  // namespace tenon::codegen
