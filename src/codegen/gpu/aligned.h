// Which kernels have a second form for tensors that begin at multiples of the widest access
// (loop/aligned_form.h).
#pragma once

#include "loop/func.h"

namespace tenon::codegen {

/// The module of lowered kernels with another form of each that moves neighbours of a tensor which
/// may begin anywhere, and has none yet.
Module WithAlignedForms(const Module& kernels);

}  // namespace tenon::codegen
