// Code of kernels for OpenCL.
#pragma once

#include "codegen/codegen.h"
#include "codegen/gpu/device_code.h"

namespace tenon::codegen {

/// OpenCL C 1.2, of the kernels whose target is an opencl one, chosen as EmitCuda does and with the
/// same parameters; a bool is a byte. To be built as its first lines say (the runtime's driver
/// does). Kernels bring their shared memory with them: a launch gives none. Functions are as exact
/// as OpenCL asks of devices, quotients and roots of f32 where the device can. f64 and atomic
/// updates of 64 bits are extensions, whose absence is an error when the code is built. Refused are
/// handles, barriers of a warp, and atomics that order memory between blocks.
Expected<std::string> EmitOpenCl(const Module& module, const Target& target,
                                 const EmitOptions& options);

/// The same as drivers take it: they compile it themselves.
Expected<DeviceCode> MakeOpenClCode(const Module& kernels, const Target& target,
                                    const DeviceCodeOptions& options);

}  // namespace tenon::codegen
