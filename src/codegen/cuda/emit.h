// Code of kernels for CUDA.
#pragma once

#include "codegen/codegen.h"
#include "codegen/gpu/device_code.h"

namespace tenon::codegen {

/// CUDA C++ for NVRTC (nvrtc.h) or nvcc with -fmad=false, of the kernels whose target is a cuda one
/// (or those of `functions`) and the device functions they call; other functions of the module are
/// left out. Kernels are in their bound form (loop/threads.h); gpu_launch.h says how to launch
/// them; their parameters are those of the machine signature above without rank, size and team.
/// Functions within 4 units in the last place, quotients and roots exact; under `fp: reassoc`
/// e^x and quotients of f32 are the machine's approximations.
Expected<std::string> EmitCuda(const Module& module, const Target& target,
                               const EmitOptions& options);

/// The same as NVRTC compiles it: a cubin and, where later architectures can take it, PTX. The null
/// device reads no code and gets the source.
Expected<DeviceCode> MakeCudaCode(const Module& kernels, const Target& target,
                                  const DeviceCodeOptions& options);

}  // namespace tenon::codegen
