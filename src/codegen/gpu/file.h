// One loop IR module → one file of device code in a language whose functions the threads of a GPU
// run (Language::gpu): what the file begins with, helpers, device functions, and the kernels.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "codegen/c_family/file.h"
#include "codegen/gpu/launch.h"

namespace tenon::codegen {

class GpuFile final : public SourceFile {
 public:
  /// All outlive the file.
  GpuFile(const Module& module, const Target& target, const EmitOptions& options,
          const Language& language)
      : SourceFile(module, options, language), target_(target), gpu_(*language.gpu) {}

  /// The kernels that the options name, or those whose target is of the kind of this one, and the
  /// device functions that they call.
  Expected<std::string> Emit();

  std::string CalleeOf(const PrimFunc& func, const std::vector<std::string>& spaces) override;
  std::string Symbol(const std::string& name) override;
  bool DeclareC(const std::string&, const std::string&, const std::vector<std::string>&) override {
    return true;  // refused where it is called
  }

 private:
  bool IsWanted(const PrimFunc& func) const;
  void EmitKernel(const PrimFunc& func);
  void EmitFunction(const PrimFunc& func, const std::string& qualifiers, FunctionForm form);
  std::string Beginning(const std::string& helpers) const;

  const Target& target_;
  const GpuSpelling& gpu_;
  std::map<std::string, std::string> callees_;  // by name and the memories of the buffers
  const PrimFunc* now_ = nullptr;
};

}  // namespace tenon::codegen
