// One loop IR module → one file of CUDA C++.
#include "codegen/cuda/emit.h"

#include <algorithm>

#include "codegen/cuda/language.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/gpu/file.h"
#include "support/strings.h"

namespace tenon::codegen {

Expected<std::string> EmitCuda(const Module& module, const Target& target,
                               const EmitOptions& options) {
  if (target.kind().code_generator != "cuda")
    return MakeError("CUDA code is made for a cuda target but got '" + target.ToString() + "'");
  return GpuFile(module, target, options, CudaCpp()).Emit();
}

namespace {

// That of an architecture's own features ("sm_90a") serves no other.
bool IsPortable(const std::string& arch) { return !arch.ends_with('a') && !arch.ends_with('f'); }

// What the source says of waiting is left out where it is compiled for an older architecture
// (ptx_launch.cc), also in PTX that a later device takes.
bool MayOverlap(const std::string& arch, const Target& target) {
  return target.CanAs(arch, Ability::kDependentLaunches);
}

// Adds the code for one architecture.
Status Add(const std::string& arch, const Target& target, DeviceCode* out) {
  TN_ASSIGN_OR_RETURN(CudaCode code, CompileCudaBoth(out->source, "kernels.cu", arch));
  out->images.push_back({"cubin for " + arch, code.cubin, MayOverlap(arch, target)});
  out->files["cubin"] = std::move(code.cubin);
  out->log += code.log;
  if (IsPortable(arch) || !out->files.count("ptx")) out->files["ptx"] = std::move(code.ptx);
  return Ok();
}

}  // namespace

// Of several architectures the highest comes first, and at the end, for later ones, the PTX of the
// highest that has no units of its own.
Expected<DeviceCode> MakeCudaCode(const Module& kernels, const Target& target) {
  DeviceCode out;
  TN_ASSIGN_OR_RETURN(out.source, EmitCuda(kernels, target, {}));
  out.files["cu"] = out.source;
  if (target.device().name != target.kind().device) {  // the null device
    out.images.push_back({"source", out.source, true});
    return out;
  }
  std::string portable;
  for (const std::string& arch : Split(target.gpu().arch, ',')) {
    if (const Status can = CanCompileFor(arch); !can) {
      out.missing = can.errors();
      return out;
    }
    TN_RETURN_IF_ERROR(Add(arch, target, &out));
    if (IsPortable(arch)) portable = arch;
  }
  std::reverse(out.images.begin(), out.images.end());
  if (!portable.empty()) {
    out.images.push_back(
        {"PTX for " + portable, out.files["ptx"] + '\0', MayOverlap(portable, target)});
  }
  return out;
}

}  // namespace tenon::codegen
