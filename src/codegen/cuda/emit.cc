// One loop IR module → one file of CUDA C++.
#include "codegen/codegen.h"
#include "codegen/cuda/language.h"
#include "codegen/gpu/file.h"

namespace tenon::codegen {

Expected<std::string> EmitCuda(const Module& module, const Target& target,
                               const EmitOptions& options) {
  if (target.kind() != TargetKind::kCuda)
    return MakeError("CUDA code is made for a cuda target but got '" + target.ToString() + "'");
  return GpuFile(module, target, options, CudaCpp()).Emit();
}

}  // namespace tenon::codegen
