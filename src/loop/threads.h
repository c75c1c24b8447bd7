// The bound form of a GPU kernel: what bind_threads makes and back ends and the interpreter take.
//
// A kernel with the attribute `bound` is one perfect nest of loops over distinct thread axes,
// blockIdx axes outside of threadIdx axes, around its whole body, in which no further loop is bound
// to an axis. The loops start at 0; their extents, over the kernel's dims, are those of the launch.
// Every thread runs the body: allocations in `shared` are one per block of threads (CTA), those in
// `global` one per launch, all others the thread's own, wherever they stand in the body.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "loop/func.h"

namespace tenon {

inline constexpr char kBoundAttr[] = "bound";

/// "blockIdx.x", …; "threadIdx.x", …. Neither: "vthread", or no axis at all.
bool IsBlockAxis(std::string_view axis);
bool IsThreadAxis(std::string_view axis);
/// The order of loops in a nest: blockIdx.z, y, x, then threadIdx.z, y, x; -1 for other names.
int AxisRank(std::string_view axis);

inline bool IsBound(const PrimFunc& func) { return func.attrs.Has(kBoundAttr); }

/// The loops over thread axes at the top of a function, outermost first, and what they enclose.
struct ThreadNest {
  std::vector<const For*> axes;
  Stmt body;
};
ThreadNest PeelThreads(const PrimFunc& func);

}  // namespace tenon
