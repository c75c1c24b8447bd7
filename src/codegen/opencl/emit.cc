// One loop IR module → one file of OpenCL C.
#include "codegen/codegen.h"
#include "codegen/gpu/file.h"
#include "codegen/opencl/language.h"

namespace tenon::codegen {

Expected<std::string> EmitOpenCl(const Module& module, const Target& target,
                                 const EmitOptions& options) {
  if (target.kind() != TargetKind::kOpenCl) {
    return MakeError("OpenCL code is made for an opencl target but got '" + target.ToString() +
                     "'");
  }
  return GpuFile(module, target, options, OpenClC()).Emit();
}

}  // namespace tenon::codegen
