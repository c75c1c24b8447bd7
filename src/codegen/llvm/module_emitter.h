// One loop IR module → one LLVM module: declarations, data, and what functions ask of the whole.
#pragma once

#include <llvm/IR/Module.h>

#include <map>
#include <set>
#include <string>

#include "codegen/abi.h"
#include "codegen/codegen.h"
#include "codegen/llvm/values.h"

namespace tenon::codegen {

class ModuleEmitter {
 public:
  ModuleEmitter(const Module& module, const Target& target, const EmitOptions& options,
                llvm::Module& out)
      : module_(module), target_(target), options_(options), out_(out), team_use_(module) {}

  /// Fills the LLVM module. The errors of all functions, if there are any.
  Status Emit();

  // --- for function emitters ---
  llvm::Module& out() { return out_; }
  llvm::LLVMContext& context() { return out_.getContext(); }
  const Target& target() const { return target_; }
  Func Find(const std::string& name) const { return module_.Find(name); }
  bool TakesTeam(const PrimFunc& func) { return team_use_.Takes(func); }
  /// The function's declaration, made on first use.
  llvm::Function* Declare(const PrimFunc& func);
  /// A C function; functions of the runtime core are hidden symbols.
  llvm::FunctionCallee DeclareC(const std::string& name, llvm::FunctionType* type);
  /// The address of a NUL-terminated constant; equal texts share one.
  llvm::Constant* CString(const std::string& text);
  /// The address of a symbol: a function of the module, a blob, or something the linker knows.
  llvm::Constant* Symbol(const std::string& name);
  void Error(const PrimFunc& func, std::string message);

 private:
  bool Defines(const PrimFunc& func) const;
  /// Nobody outside this object can call it.
  bool IsInternal(const PrimFunc& func) const;
  void EmitBlob(const DataBlob& blob);
  void EmitErrorText(const std::string& name);
  void Decorate(const PrimFunc& func, llvm::Function* f);
  void DecorateParams(const PrimFunc& func, llvm::Function* f);

  const Module& module_;
  const Target& target_;
  const EmitOptions& options_;
  llvm::Module& out_;
  TeamUse team_use_;
  std::map<std::string, llvm::Constant*> strings_;
  Diagnostics errors_;
  std::set<std::string> reported_;
};

}  // namespace tenon::codegen
