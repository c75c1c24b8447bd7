// Kernels in two forms: one for tensors that begin anywhere, and one for those whose addresses are
// multiples of kKernelAlign. Which of them a launch takes the runtime sees by its arguments; so
// both have the same arguments, launch and shared memory.
#pragma once

#include <string>

#include "loop/func.h"

namespace tenon {

/// What the widest access of a thread and the copy engine want, in bytes: TN_KERNEL_ALIGN of
/// tenon/kernel_abi.h.
inline constexpr int64_t kKernelAlign = 16;

/// An attribute of a kernel: the name of its other form, for addresses that are multiples of
/// kKernelAlign. That has the attribute kIsAlignedAttr.
inline constexpr char kAlignedFormAttr[] = "aligned_form";
inline constexpr char kIsAlignedAttr[] = "is_aligned_form";

/// The kernel under that name as an aligned form: parameters begin at multiples of kKernelAlign.
Func AlignedForm(const PrimFunc& kernel, const std::string& name);

}  // namespace tenon
