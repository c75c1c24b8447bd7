// The entry points: from a module to bytes.
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>

#include <map>
#include <mutex>

#include "codegen/codegen.h"
#include "codegen/llvm/module_emitter.h"
#include "codegen/llvm/passes.h"
#include "support/check.h"

namespace tenon::codegen {

namespace {

void InitializeLlvm() {
  static std::once_flag once;
  std::call_once(once, [] {
#define TN_INITIALIZE(name)           \
  LLVMInitialize##name##TargetInfo(); \
  LLVMInitialize##name##Target();     \
  LLVMInitialize##name##TargetMC();   \
  LLVMInitialize##name##AsmPrinter();
    // The architectures of targets.def: the archive of `build.sh dist` links no others.
    TN_INITIALIZE(X86)
    TN_INITIALIZE(AArch64)
    TN_INITIALIZE(RISCV)
    TN_INITIALIZE(WebAssembly)
#undef TN_INITIALIZE
    // Strength reduction invents one induction variable per stream and spills them. Off by default:
    // the linker, in the same process, sets all options back to their defaults.
    llvm::cl::Option* option = llvm::cl::getRegisteredOptions().lookup("disable-lsr");
    TN_CHECK(option, "this LLVM has no option disable-lsr");
    static_cast<llvm::cl::opt<bool>*>(option)->setInitialValue(true);
  });
}

// What has its memory to itself is where the linker puts it.
bool IsPositionIndependent(const Target& target) { return !target.IsContained(); }

Expected<std::unique_ptr<llvm::TargetMachine>> MakeMachine(const Target& target, bool quickly) {
  if (target.kind().code_generator != "llvm") {
    return MakeError("target '" + target.ToString() + "' is not one for LLVM");
  }
  InitializeLlvm();
  std::string problem;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(target.triple(), problem);
  if (!found) return MakeError("triple '" + target.triple() + "': " + problem);
  llvm::TargetOptions how;
  how.AllowFPOpFusion = llvm::FPOpFusion::Standard;  // by each operation's flags
  how.FunctionSections = true;                       // what is not called is not linked
  how.DataSections = true;
  // Floats in registers, as every system for such machines has it.
  if (target.arch() == Arch::kRiscV64) how.MCOptions.ABIName = "lp64d";
  std::unique_ptr<llvm::TargetMachine> machine(found->createTargetMachine(
      target.triple(), target.LlvmCpu(), target.LlvmFeatures(), how,
      IsPositionIndependent(target) ? llvm::Reloc::PIC_ : llvm::Reloc::Static,
      llvm::CodeModel::Small,
      quickly ? llvm::CodeGenOptLevel::None : llvm::CodeGenOptLevel::Default));
  if (!machine) return MakeError("triple '" + target.triple() + "': LLVM has no code generator");
  return machine;
}

/// Machines that wait for their next module. What one learns of its processor at first use takes as
/// long as compiling a small kernel, so whoever has compiled leaves it to the next.
class Machines {
 public:
  static Machines& Idle() {
    static auto* idle = new Machines;  // LLVM's own globals must not die before them
    return *idle;
  }

  Expected<std::unique_ptr<llvm::TargetMachine>> Take(const Target& target, bool quickly) {
    const std::string name = NameOf(target, quickly);
    {
      std::lock_guard lock(mutex_);
      std::vector<std::unique_ptr<llvm::TargetMachine>>& waiting = waiting_[name];
      if (!waiting.empty()) {
        std::unique_ptr<llvm::TargetMachine> machine = std::move(waiting.back());
        waiting.pop_back();
        return machine;
      }
    }
    return MakeMachine(target, quickly);
  }

  void Give(const Target& target, bool quickly, std::unique_ptr<llvm::TargetMachine> machine) {
    std::lock_guard lock(mutex_);
    waiting_[NameOf(target, quickly)].push_back(std::move(machine));
  }

 private:
  static std::string NameOf(const Target& target, bool quickly) {
    return target.triple() + '\n' + target.LlvmCpu() + '\n' + target.LlvmFeatures() + '\n' +
           (IsPositionIndependent(target) ? "pic" : "static") + (quickly ? " quickly" : "");
  }

  std::mutex mutex_;
  std::map<std::string, std::vector<std::unique_ptr<llvm::TargetMachine>>> waiting_;
};

// What the back end has to say about a module becomes diagnostics rather than a line on stderr.
struct Listener final : llvm::DiagnosticHandler {
  explicit Listener(Diagnostics* errors) : errors(errors) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo& info) override {
    if (info.getSeverity() != llvm::DS_Error) return true;
    std::string text;
    llvm::raw_string_ostream stream(text);
    llvm::DiagnosticPrinterRawOStream printer(stream);
    info.print(printer);
    errors->push_back(MakeError("LLVM: " + text));
    return true;
  }
  Diagnostics* errors;
};

enum class Form { kObject, kAssembly, kLlvm };

Status Write(llvm::Module& module, llvm::TargetMachine& machine, Form form,
             llvm::raw_svector_ostream& out) {
  if (form == Form::kLlvm) {
    module.print(out, nullptr);
    return Ok();
  }
  llvm::legacy::PassManager passes;
  const auto type = form == Form::kObject ? llvm::CodeGenFileType::ObjectFile
                                          : llvm::CodeGenFileType::AssemblyFile;
  if (machine.addPassesToEmitFile(passes, out, nullptr, type)) {
    return MakeError("LLVM cannot write this kind of file for triple '" +
                     machine.getTargetTriple().str() + "'");
  }
  passes.run(module);
  return Ok();
}

Expected<std::string> EmitForm(const Module& module, const Target& given,
                               const EmitOptions& options, Form form) {
  const Target& target = given.Cpu();
  TN_ASSIGN_OR_RETURN(std::unique_ptr<llvm::TargetMachine> machine,
                      Machines::Idle().Take(target, options.quickly));
  Diagnostics errors;
  llvm::LLVMContext context;
  context.setDiagnosticHandler(std::make_unique<Listener>(&errors));
  llvm::Module out("tenon", context);
  out.setTargetTriple(target.triple());
  out.setDataLayout(machine->createDataLayout());
  if (IsPositionIndependent(target)) out.setPICLevel(llvm::PICLevel::BigPIC);
  TN_RETURN_IF_ERROR(ModuleEmitter(module, target, options, out).Emit());
  if (options.verify) {
    std::string problem;
    llvm::raw_string_ostream stream(problem);
    const bool broken = llvm::verifyModule(out, &stream);
    TN_CHECK(!broken, "code generation made invalid LLVM IR: {}", problem);
  }
  RunPasses(out, *machine);
  llvm::SmallString<0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  TN_RETURN_IF_ERROR(Write(out, *machine, form, stream));
  if (!errors.empty()) return errors;
  Machines::Idle().Give(target, options.quickly, std::move(machine));
  return std::string(bytes);
}

}  // namespace

Expected<std::string> EmitObject(const Module& module, const Target& target,
                                 const EmitOptions& options) {
  return EmitForm(module, target, options, Form::kObject);
}

Expected<std::string> EmitAssembly(const Module& module, const Target& target,
                                   const EmitOptions& options) {
  return EmitForm(module, target, options, Form::kAssembly);
}

Expected<std::string> EmitLlvm(const Module& module, const Target& target,
                               const EmitOptions& options) {
  return EmitForm(module, target, options, Form::kLlvm);
}

}  // namespace tenon::codegen
