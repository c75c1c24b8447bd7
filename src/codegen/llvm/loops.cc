// Loops of a function: over a worker's share, over quotients, and plain ones.

#include "codegen/llvm/function_emitter.h"
#include "codegen/quotients.h"
#include "loop/facts.h"

namespace tenon::codegen {

using llvm::Value;

// The core hands out parts of the whole loop, which the bounds at rank 0 of 1 are; at a part's rank
// and size they are the part's.
void FunctionEmitter::EmitShare(const For& s) {
  const TeamValues own = exprs_.team();
  llvm::Type* i32 = ir_.getInt32Ty();
  auto* part_type = llvm::StructType::get(i32, i32, i32, i32);
  llvm::BasicBlock& entry = f_->getEntryBlock();
  llvm::IRBuilder<> at_entry(&entry, entry.begin());
  llvm::AllocaInst* part = at_entry.CreateAlloca(part_type, nullptr, "part");
  auto field = [&](unsigned i) { return ir_.CreateStructGEP(part_type, part, i); };
  exprs_.SetTeam({ir_.getInt32(0), ir_.getInt32(1), own.team});
  Value* extent = ir_.CreateSExtOrTrunc(exprs_.Emit(s.extent), ir_.getInt64Ty());
  ir_.CreateStore(ir_.getInt32(0), field(2));

  llvm::BasicBlock* next = NewBlock("share");
  llvm::BasicBlock* taken = NewBlock("part");
  llvm::BasicBlock* done = NewBlock("shared");
  ir_.CreateBr(next);
  ir_.SetInsertPoint(next);
  auto* type =
      llvm::FunctionType::get(i32, {ir_.getPtrTy(), ir_.getInt64Ty(), ir_.getPtrTy()}, false);
  Value* is_there =
      ir_.CreateCall(module_.DeclareC("tn_core_take", type), {own.team, extent, part});
  ir_.CreateCondBr(ir_.CreateIsNotNull(is_there), taken, done);
  ir_.SetInsertPoint(taken);
  exprs_.BeginStatement();
  exprs_.SetTeam({ir_.CreateLoad(i32, field(0)), ir_.CreateLoad(i32, field(1)), own.team});
  Value* min = exprs_.Emit(s.min);
  Value* count = exprs_.Emit(s.extent);
  exprs_.SetTeam(own);
  exprs_.BeginStatement();
  EmitSerial(s, min, count);
  ir_.CreateBr(next);
  ir_.SetInsertPoint(done);
}

void FunctionEmitter::EmitSerial(const For& s) {
  if (const auto count = AsInt(s.extent); count && *count <= 0) return;
  Value* min = exprs_.Emit(s.min);
  EmitSerial(s, min, exprs_.Emit(s.extent));
}

void FunctionEmitter::EmitSerial(const For& s, Value* min, Value* extent) {
  const auto count = AsInt(s.extent);
  Value* end = ir_.CreateNSWAdd(min, extent);
  if (EmitByQuotients(s, min, end)) return;
  Learn(s, &exprs_.facts());

  llvm::BasicBlock* body = NewBlock("loop");
  llvm::BasicBlock* exit = NewBlock("done");
  llvm::BasicBlock* before = ir_.GetInsertBlock();
  if (count) {
    ir_.CreateBr(body);
  } else {
    ir_.CreateCondBr(ir_.CreateICmpSLT(min, end), body, exit);
  }
  ir_.SetInsertPoint(body);
  llvm::PHINode* var = ir_.CreatePHI(min->getType(), 2, s.var->name);
  var->addIncoming(min, before);
  exprs_.BindVar(s.var.get(), var);
  EmitStmt(s.body);
  Value* next = ir_.CreateNSWAdd(var, llvm::ConstantInt::get(var->getType(), 1));
  var->addIncoming(next, ir_.GetInsertBlock());
  llvm::BranchInst* back = ir_.CreateCondBr(ir_.CreateICmpSLT(next, end), body, exit);
  llvm::LLVMContext& c = module_.context();
  llvm::Metadata* off = llvm::MDNode::get(c, llvm::MDString::get(c, "llvm.loop.unroll.disable"));
  llvm::MDNode* loop = llvm::MDNode::getDistinct(c, {nullptr, off});
  loop->replaceOperandWith(0, loop);
  back->setMetadata(llvm::LLVMContext::MD_loop, loop);
  ir_.SetInsertPoint(exit);
}

bool FunctionEmitter::EmitByQuotients(const For& s, Value* min, Value* end) {
  if (func_.dims.empty()) return false;  // what divides is a number
  const Var first = VarNode::Make(s.var->name + ".first", DType::Index());
  const Var last = VarNode::Make(s.var->name + ".end", DType::Index());
  exprs_.facts().BindInterval(first, exprs_.facts().ConstBounds(s.min));
  const Stmt split = SplitAtQuotients(s, first, last, &exprs_.facts());
  if (!split) return false;
  exprs_.BindVar(first.get(), min);
  exprs_.BindVar(last.get(), end);
  kept_.push_back(split);
  EmitStmt(split);
  return true;
}

}  // namespace tenon::codegen
