// Calls of device functions that stand for an operation of the machine: a row of src/intrin.
//
// Operands in memory are loaded and stored around the operation; those in register buffers are
// allocas with constant indices, which sroa turns into the registers themselves.
#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>

#include "codegen/llvm/function_emitter.h"
#include "support/check.h"

namespace tenon::codegen {

using llvm::Value;

namespace {

int64_t BytesOf(const Region& region, const PrimFunc& callee, size_t operand) {
  int64_t elements = 1;
  for (const Expr& extent : callee.buffers[operand]->shape) elements *= AsInt(extent).value_or(0);
  return elements * region->buffer->dtype.Bytes();
}

}  // namespace

llvm::Value* FunctionEmitter::TileArgument(const CallFunc& s, const PrimFunc& callee,
                                           const EmissionArg& arg, llvm::Type* param) {
  const auto operand = static_cast<size_t>(arg.operand);
  const Region& region = s.buffers[operand];
  switch (arg.kind) {
    case ArgKind::kValue: {
      Value* v = exprs_.LoadAt(region, exprs_.values().MemoryTypeOf(arg.type));
      return ir_.CreateBitCast(v, param);
    }
    case ArgKind::kSplat: {
      const int64_t bytes = BytesOf(region, callee, operand);
      Value* v = exprs_.LoadAt(region, ir_.getIntNTy(static_cast<unsigned>(8 * bytes)));
      const auto times = static_cast<unsigned>(arg.type.Bytes() / bytes);
      return ir_.CreateBitCast(ir_.CreateVectorSplat(times, v), param);
    }
  }
  TN_UNREACHABLE();
}

void FunctionEmitter::EmitTileIntrinsic(const CallFunc& s, const PrimFunc& callee,
                                        const Emission& emission) {
  const llvm::Intrinsic::ID id = llvm::Function::lookupIntrinsicID(emission.text);
  TN_CHECK(id != llvm::Intrinsic::not_intrinsic, "LLVM has no {}", emission.text);
  llvm::Function* operation = llvm::Intrinsic::getDeclaration(f_->getParent(), id);
  std::vector<Value*> args;
  for (const EmissionArg& arg : emission.args) {
    llvm::Type* param =
        operation->getFunctionType()->getParamType(static_cast<unsigned>(args.size()));
    args.push_back(TileArgument(s, callee, arg, param));
  }
  Value* result = ir_.CreateCall(operation, args);
  if (!result->getType()->isVoidTy()) exprs_.StoreAt(s.buffers.back(), result);
}

}  // namespace tenon::codegen
