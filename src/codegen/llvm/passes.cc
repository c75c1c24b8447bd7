#include "codegen/llvm/passes.h"

#include <llvm/Passes/PassBuilder.h>

#include "support/check.h"

namespace tenon::codegen {

// Order and reasons: sroa turns register buffers into values; early-cse joins the address
// arithmetic that each statement wrote anew (with memory, so that loads of one statement serve the
// next); instcombine and simplifycfg clean up branches and compares; licm moves what a loop does
// not change out of it.
static constexpr const char* kPasses =
    "function(sroa,early-cse<memssa>,instcombine<max-iterations=1;no-verify-fixpoint>,simplifycfg,"
    "loop-mssa(licm),early-cse)";

void RunPasses(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::ModulePassManager passes;
  llvm::Error error = builder.parsePassPipeline(passes, kPasses);
  TN_CHECK(!error, "{}", llvm::toString(std::move(error)));
  passes.run(module, modules);
}

}  // namespace tenon::codegen
