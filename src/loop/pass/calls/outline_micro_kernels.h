// outline_micro_kernels: the computation of a register tile becomes a device function.
//
// Needs: flat storage, vectors expanded (loops that are left are serial or unrolled).
// Ensures: an allocation of registers with the loops that fill it, where they do enough work to pay
// for a call, is a call of a device function (attribute `micro_kernel`). The function is keyed by
// what is done: element types, the tile's size, what happens to the results, and small strides
// inside the tile. Where the tile lies, the trip counts of its serial loops and its large strides
// are parameters, so that the tiles of most layers of a network, which differ in nothing else, are
// equal functions; equal functions of the module are one, and the driver joins those of different
// kernels. A piece whose accesses are not affine in its loops stays where it is.
// Why here: after split_guards, so that a full tile knows nothing of the edges; before unroll, so
// that little code has to be compared.
#pragma once

#include "loop/pass/pass.h"

namespace tenon {

inline constexpr const char* kMicroKernel = "micro_kernel";

Module OutlineMicroKernels(const Module& module, const PassContext& context);

/// `func` under another name; what is called by a name in `names` is called by the new one.
Func Renamed(const Func& func, const std::string& name,
             const std::map<std::string, std::string>& names);

}  // namespace tenon
