// Our own short list of LLVM passes: what hand-made IR needs, and none of the optimiser's guesses
// (no vectorisers, no unroller). The only user of PassBuilder.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

namespace tenon::codegen {

/// An attribute of functions that run once a call, however large the network's data are: their
/// instructions are chosen quickly, once the passes have run.
inline constexpr const char* kRunsOnce = "tenon-runs-once";

void RunPasses(llvm::Module& module, llvm::TargetMachine& machine);

}  // namespace tenon::codegen
