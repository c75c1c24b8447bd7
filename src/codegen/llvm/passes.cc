#include "codegen/llvm/passes.h"

#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Passes/PassBuilder.h>

#include <vector>

#include "support/check.h"

namespace tenon::codegen {

// Order and reasons: sroa turns register buffers into values; early-cse joins the address
// arithmetic that each statement wrote anew (with memory, so that loads of one statement serve the
// next); instcombine and simplifycfg clean up branches and compares; licm moves what a loop does
// not change out of it. dse drops what is written over before anybody reads it, as the sums of all
// but the last of unrolled steps are.
static constexpr const char* kPasses =
    "function(sroa,early-cse<memssa>,instcombine<max-iterations=1;no-verify-fixpoint>,simplifycfg,"
    "loop-mssa(licm),early-cse,dse)";

// Comparisons of halves as those of floats. Passes narrow them, and of one that chooses between its
// own operands the back ends of machines without arithmetic on halves make a call of fmaxf, which
// not every machine that a library goes to has; of any other they make this.
static void WidenComparisons(llvm::Function& function) {
  std::vector<llvm::FCmpInst*> found;
  for (llvm::Instruction& i : llvm::instructions(function)) {
    auto* compare = llvm::dyn_cast<llvm::FCmpInst>(&i);
    if (compare && compare->getOperand(0)->getType()->getScalarType()->is16bitFPTy())
      found.push_back(compare);
  }
  for (llvm::FCmpInst* compare : found) {
    llvm::IRBuilder<> ir(compare);
    for (unsigned side : {0u, 1u}) {
      llvm::Value* v = compare->getOperand(side);
      compare->setOperand(side, ir.CreateFPExt(v, v->getType()->getWithNewType(ir.getFloatTy())));
    }
  }
}

// The back end spends most of its time on choosing among ways to do what these functions do, which
// is to compare one number after the other and go on.
static void ChooseQuickly(llvm::Module& module) {
  for (llvm::Function& function : module) {
    if (!function.hasFnAttribute(kRunsOnce)) continue;
    function.removeFnAttr(kRunsOnce);
    function.addFnAttr(llvm::Attribute::OptimizeNone);
  }
}

// A gather that the machine has not got, as it reads each lane: LLVM would make a branch of each,
// which is long to compile and slow to run. Lanes that are off read a zero instead.
static void ReadLanes(llvm::IntrinsicInst* gather) {
  auto* type = llvm::cast<llvm::FixedVectorType>(gather->getType());
  llvm::Type* element = type->getElementType();
  llvm::Module& module = *gather->getModule();
  llvm::Value *places = gather->getArgOperand(0), *mask = gather->getArgOperand(2),
              *otherwise = gather->getArgOperand(3);
  const llvm::Align align(llvm::cast<llvm::ConstantInt>(gather->getArgOperand(1))->getZExtValue());
  auto* zero = new llvm::GlobalVariable(module, element, /*isConstant=*/true,
                                        llvm::GlobalValue::PrivateLinkage,
                                        llvm::Constant::getNullValue(element), ".zero");
  zero->setAlignment(align);
  llvm::IRBuilder<> ir(gather);
  places = ir.CreateSelect(mask, places, ir.CreateVectorSplat(type->getNumElements(), zero));
  llvm::Value* read = llvm::PoisonValue::get(type);
  for (uint64_t i = 0; i < type->getNumElements(); ++i) {
    llvm::Value* x = ir.CreateAlignedLoad(element, ir.CreateExtractElement(places, i), align);
    read = ir.CreateInsertElement(read, x, i);
  }
  const auto* none = llvm::dyn_cast<llvm::Constant>(otherwise);
  if (!none || !none->isNullValue()) read = ir.CreateSelect(mask, read, otherwise);
  gather->replaceAllUsesWith(read);
  gather->eraseFromParent();
}

static void ReadLanesOfGathers(llvm::Function& function, const llvm::TargetTransformInfo& machine) {
  std::vector<llvm::IntrinsicInst*> found;
  for (llvm::Instruction& i : llvm::instructions(function)) {
    auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
    if (!call || call->getIntrinsicID() != llvm::Intrinsic::masked_gather) continue;
    auto* type = llvm::dyn_cast<llvm::FixedVectorType>(call->getType());
    const auto* mask = llvm::dyn_cast<llvm::Constant>(call->getArgOperand(2));
    if (!type || (mask && mask->isAllOnesValue())) continue;
    const llvm::Align align(llvm::cast<llvm::ConstantInt>(call->getArgOperand(1))->getZExtValue());
    if (!machine.isLegalMaskedGather(type, align) ||
        machine.forceScalarizeMaskedGather(type, align))
      found.push_back(call);
  }
  for (llvm::IntrinsicInst* call : found) ReadLanes(call);
}

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
  ChooseQuickly(module);
  for (llvm::Function& function : module) {
    if (!function.isDeclaration())
      ReadLanesOfGathers(function, machine.getTargetTransformInfo(function));
  }
  const llvm::Triple& triple = machine.getTargetTriple();
  if (triple.isAArch64() || triple.isRISCV()) return;
  for (llvm::Function& function : module) WidenComparisons(function);
}

}  // namespace tenon::codegen
