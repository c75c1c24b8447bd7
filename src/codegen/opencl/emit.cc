// One loop IR module → one file of OpenCL C.
#include "codegen/opencl/emit.h"

#include "codegen/gpu/file.h"
#include "codegen/opencl/language.h"

namespace tenon::codegen {

Expected<std::string> EmitOpenCl(const Module& module, const Target& target,
                                 const EmitOptions& options) {
  if (target.kind().code_generator != "opencl") {
    return MakeError("OpenCL code is made for an opencl target but got '" + target.ToString() +
                     "'");
  }
  return GpuFile(module, target, options, OpenClC()).Emit();
}

Expected<DeviceCode> MakeOpenClCode(const Module& kernels, const Target& target,
                                    const DeviceCodeOptions&) {
  DeviceCode out;
  TN_ASSIGN_OR_RETURN(out.source, EmitOpenCl(kernels, target, {}));
  out.files["cl"] = out.source;
  out.images.push_back({"OpenCL C", {out.source}, false});
  return out;
}

}  // namespace tenon::codegen
