// Our own short list of LLVM passes: what hand-made IR needs, and none of the optimiser's guesses
// (no vectorisers, no unroller). The only user of PassBuilder.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

namespace tenon::codegen {

void RunPasses(llvm::Module& module, llvm::TargetMachine& machine);

}  // namespace tenon::codegen
