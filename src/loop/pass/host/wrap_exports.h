// wrap_exports: gives an exported kernel a host function that launches it.
//
// Needs: nothing; the first pass. Ensures: exported functions are host functions. A kernel K with
// attribute `exported` loses it to a new host function K.host of the same parameters, with
// attribute export_name: "K" and the kernel's `arguments` and `requires`, whose body is `launch K`.
// Callers have tensors without layouts: a buffer with one is, in the host function, the tensor of
// its storage. From there on a single exported kernel and a whole network take the same road. A
// kernel with parameters that no caller can pass (loop/arguments.h) stays as it is and a remark
// says so. The host function of a GPU target's kernel is for that target's host and launches on
// "device 0", the device that its tensors are on, whose number is a further scalar parameter
// `device.id`; attribute device_type: the DLDeviceType. The parameters of one with vectorized loops
// are aligned to 16 bytes, and those that operations are passed to what these want; calls check it.
#pragma once

#include "loop/pass/pass.h"

namespace tenon {

Module WrapExports(const Module& module, const PassContext& context);

}  // namespace tenon
