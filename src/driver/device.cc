#include "driver/device.h"

#include <fmt/format.h>

#include "codegen/cuda/nvrtc.h"
#include "loop/pass/host/lower_launches.h"
#include "loop/pass/packed_abi.h"
#include "support/check.h"
#include "tenon/kernel_abi.h"

namespace tenon::driver {

namespace {

// PTX serves later architectures, but that of an architecture's own features ("sm_90a") none.
Expected<DeviceCode> MakeCuda(const Module& kernels, const Target& target) {
  DeviceCode out;
  TN_ASSIGN_OR_RETURN(out.source, codegen::EmitCuda(kernels, target, {}));
  out.files["cu"] = out.source;
  if (packed::DeviceTypeOf(target) != TN_DL_CUDA) {  // the null device reads no code
    out.images.push_back({"source", out.source});
    return out;
  }
  const std::string& arch = target.gpu().arch;
  if (const Status can = codegen::CanCompileFor(arch); !can) {
    out.missing = can.errors();
    return out;
  }
  TN_ASSIGN_OR_RETURN(codegen::CudaCode code,
                      codegen::CompileCudaBoth(out.source, "kernels.cu", arch));
  out.images.push_back({"cubin for " + arch, code.cubin});
  if (!arch.ends_with('a') && !arch.ends_with('f')) {
    out.images.push_back({"PTX for " + arch, code.ptx + '\0'});
  }
  out.files["cubin"] = std::move(code.cubin);
  out.files["ptx"] = std::move(code.ptx);
  return out;
}

// Drivers compile it themselves.
Expected<DeviceCode> MakeOpenCl(const Module& kernels, const Target& target) {
  DeviceCode out;
  TN_ASSIGN_OR_RETURN(out.source, codegen::EmitOpenCl(kernels, target, {}));
  out.files["cl"] = out.source;
  out.images.push_back({"OpenCL C", out.source});
  return out;
}

}  // namespace

Status CheckBuildable(const Target& target) {
  if (target.kind() == TargetKind::kRocm) {
    return MakeError(
        fmt::format("target '{}' cannot be built for yet; use an llvm, cuda or opencl "
                    "target, or c",
                    target.ToString()));
  }
  if (target.IsGpu() && target.Cpu().kind() != TargetKind::kLlvm) {
    return MakeError(fmt::format("target '{}' has the host '{}'; use an llvm target as host",
                                 target.ToString(), target.Cpu().ToString()));
  }
  return Ok();
}

Expected<DeviceCode> MakeDeviceCode(const Module& kernels, const Target& target) {
  switch (target.kind()) {
    case TargetKind::kCuda: return MakeCuda(kernels, target);
    case TargetKind::kOpenCl: return MakeOpenCl(kernels, target);
    case TargetKind::kRocm:
    case TargetKind::kLlvm:
    case TargetKind::kC: break;
  }
  return MakeError(fmt::format("there is no device code for target '{}'", target.ToString()));
}

Expected<std::vector<codegen::DataBlob>> DeviceBlobs(const Module& kernels, const DeviceCode& code,
                                                     const Target& target) {
  if (!code.missing.empty()) return code.missing;
  return codegen::PackDeviceCode(DeviceKernels(kernels), target, packed::DeviceTypeOf(target),
                                 code.images);
}

}  // namespace tenon::driver
