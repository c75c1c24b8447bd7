// lower_launches: launches on a device become calls of the runtime core.
//
// Needs: a host function with the attribute device_type (wrap_exports); the launched kernels, or
// their declarations, in their bound form (loop/threads.h). Ensures: `launch K on "device 0"` is a
// call tn_core_device_launch(code, number, extents, args): number counts DeviceKernels, extents are
// those of K's axes over the launch's dims, args the addresses of the parameters' values. A
// function whose launches follow from its dims and the addresses that it is given, and are more
// than one, has the attribute `repeats`: calls of it can be kept as graphs. The library brings the
// code as the data tn_blob_device_code. A launch of what has no bound form, or on another device,
// stays. What the host reads of the device's memory (to decide a branch, whether a loop goes on, a
// size) it fetches first: tn_core_device_fetch, which waits for it; the attribute `waits` counts
// the places where it does, `waits_in_loops` those of them within loops. Why here: after
// lower_team, for which a device is no worker, and before make_packed fixes the parameters.
#pragma once

#include "loop/pass/pass.h"

namespace tenon {

Module LowerLaunches(const Module& module, const PassContext& context);

/// The kernels of a GPU target, in the order in which launches number them.
std::vector<Func> DeviceKernels(const Module& module);

}  // namespace tenon
