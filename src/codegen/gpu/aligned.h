// Kernels in two forms: one for tensors that begin anywhere, and one for those whose addresses are
// multiples of the widest access. Which of them a launch takes the runtime sees by its arguments.
#pragma once

#include "loop/func.h"

namespace tenon::codegen {

/// An attribute of a kernel: the name of its other form, for addresses that are multiples of
/// TN_KERNEL_ALIGN. That has the attribute kIsAlignedAttr.
inline constexpr char kAlignedFormAttr[] = "aligned_form";
inline constexpr char kIsAlignedAttr[] = "is_aligned_form";

/// The module of lowered kernels with another form of each that moves neighbours of a tensor which
/// may begin anywhere.
Module WithAlignedForms(const Module& kernels);

}  // namespace tenon::codegen
