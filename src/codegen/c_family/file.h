// What the files of all languages of the C family have in common: the names of their functions,
// helpers, and what could not be written.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "codegen/c_family/function.h"
#include "codegen/codegen.h"

namespace tenon::codegen {

class SourceFile : public SourceModule {
 public:
  Func Find(const std::string& name) const override { return module_.Find(name); }
  std::string NameOf(const PrimFunc& func) override { return function_names_.at(func.name); }
  /// One message a function.
  void Error(const PrimFunc& func, std::string message) override;

 protected:
  /// All outlive the file.
  SourceFile(const Module& module, const EmitOptions& options, const Language& language);

  /// Whether the options ask for it: by name, or by naming nothing.
  bool IsAskedFor(const std::string& name) const;
  /// An error where the options ask for what is not there.
  Status CheckOptions() const;
  /// Gives every function a name: those that `keeps` holds for their own ("a kernel", says `what`,
  /// for messages), the others what `wanted` says, or one like it.
  void NameFunctions(const std::function<bool(const PrimFunc&)>& keeps, const char* what,
                     const std::function<std::string(const PrimFunc&)>& wanted);

  const Module& module_;
  const EmitOptions& options_;
  const Language& language_;
  Helpers helpers_;
  Names names_;
  WrittenBuffers written_;
  std::map<std::string, std::string> function_names_;
  std::set<std::string> done_;  // functions that are written, or being written
  std::string prototypes_, functions_;
  Diagnostics errors_;

 private:
  std::set<std::string> reported_;
};

}  // namespace tenon::codegen
