// One loop IR module → one file of CUDA C++.
#include "codegen/cuda/emit.h"

#include "codegen/cuda/language.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/gpu/file.h"

namespace tenon::codegen {

Expected<std::string> EmitCuda(const Module& module, const Target& target,
                               const EmitOptions& options) {
  if (target.kind().code_generator != "cuda")
    return MakeError("CUDA code is made for a cuda target but got '" + target.ToString() + "'");
  return GpuFile(module, target, options, CudaCpp()).Emit();
}

// PTX serves later architectures, but that of an architecture's own features ("sm_90a") none.
Expected<DeviceCode> MakeCudaCode(const Module& kernels, const Target& target) {
  DeviceCode out;
  TN_ASSIGN_OR_RETURN(out.source, EmitCuda(kernels, target, {}));
  out.files["cu"] = out.source;
  if (target.device().name != target.kind().device) {  // the null device
    out.images.push_back({"source", out.source});
    return out;
  }
  const std::string& arch = target.gpu().arch;
  if (const Status can = CanCompileFor(arch); !can) {
    out.missing = can.errors();
    return out;
  }
  TN_ASSIGN_OR_RETURN(CudaCode code, CompileCudaBoth(out.source, "kernels.cu", arch));
  out.images.push_back({"cubin for " + arch, code.cubin});
  if (!arch.ends_with('a') && !arch.ends_with('f')) {
    out.images.push_back({"PTX for " + arch, code.ptx + '\0'});
  }
  out.files["cubin"] = std::move(code.cubin);
  out.files["ptx"] = std::move(code.ptx);
  return out;
}

}  // namespace tenon::codegen
