// One function of the loop IR → one LLVM function.
#pragma once

#include "codegen/llvm/expr_emitter.h"
#include "intrin/tile_intrinsic.h"

namespace tenon::codegen {

class FunctionEmitter {
 public:
  FunctionEmitter(ModuleEmitter& module, const PrimFunc& func, llvm::Function* f)
      : module_(module), func_(func), f_(f), ir_(module.context()), exprs_(module, func, ir_) {}

  /// Fills the declared function.
  void Emit();

 private:
  void BindParams();
  void EmitStmt(const Stmt& s);
  void EmitFor(const For& s);
  void EmitIf(const If& s);
  void EmitWhile(const While& s);
  void EmitLet(const Let& s);
  void EmitAlloc(const Alloc& s);
  void EmitBind(const Bind& s);
  void EmitBlock(const Block& s);
  void EmitEvaluate(const Evaluate& s);
  void EmitCall(const CallFunc& s);
  void EmitCopy(const Copy& s);
  void EmitAssert(const Assert& s);
  void EmitReturn(const Return& s);
  void EmitSync(const Sync& s);
  void EmitAtomic(const Atomic& s);

  // loops.cc
  void EmitShare(const For& s);
  void EmitSerial(const For& s);
  void EmitSerial(const For& s, llvm::Value* min, llvm::Value* extent);
  /// Emits [min, end) of the loop as two that need no quotients, where there are some to save.
  bool EmitByQuotients(const For& s, llvm::Value* min, llvm::Value* end);

  // tile_calls.cc
  void EmitTileIntrinsic(const CallFunc& s, const PrimFunc& callee, const Emission& emission);
  llvm::Value* TileArgument(const CallFunc& s, const PrimFunc& callee, const EmissionArg& arg,
                            llvm::Type* param);
  /// Whether buffers in scope `tile` are tiles of the machine, not memory.
  bool HasTiles() const { return module_.target().Has("amx-tile"); }
  void ConfigureTiles();
  void EmitTileAlloc(const Alloc& s, int64_t bytes);
  bool OnlyTileOperand(const Alloc& s);
  llvm::Value* TileNumber(const Region& region);
  /// Of an operation of tiles that was emitted: the tile that it writes, and the memory whose
  /// elements that tile then holds, where it is a load.
  struct TileWrite {
    int64_t tile;
    const CallFunc* load = nullptr;
  };
  /// Whether the tile holds what the call would load.
  bool IsLoaded(int64_t tile, const CallFunc& load) const;

  /// Leaves the function with the status where it is not 0.
  void ReturnIfFailed(llvm::Value* status);
  void Finish(llvm::Value* status);
  llvm::Value* MessagePart(const Expr& part, int* kind);
  llvm::Constant* PartConstant(int kind, int value, llvm::Constant* payload);
  llvm::GlobalVariable* PartsConstant(const std::vector<llvm::Constant*>& parts);
  llvm::Value* PartsCopy(const std::vector<llvm::Constant*>& parts,
                         const std::vector<llvm::Value*>& values);
  llvm::CallInst* EmitRaise(const std::string& error_kind, const std::vector<Expr>& message);
  llvm::Value* RegionAddress(const Region& region);
  llvm::BasicBlock* NewBlock(const char* name);
  void Unsupported(const std::string& what) { exprs_.Unsupported(what, DType::Int(32)); }

  ModuleEmitter& module_;
  const PrimFunc& func_;
  llvm::Function* f_;
  llvm::IRBuilder<> ir_;
  ExprEmitter exprs_;
  std::vector<Stmt> kept_;  // made here: values are known by the addresses of nodes
  FpMode fp_ = FpMode::kStrict;
  bool apart_ = false;  // in the branch of worker 0 alone (loop/team.h)
  bool uses_tiles_ = false;
  int64_t num_tiles_ = 0;                                 // alive here
  std::unordered_map<const BufferNode*, int64_t> tiles_;  // a buffer's first tile
  std::unordered_map<const llvm::Instruction*, TileWrite> tile_writes_;
};

}  // namespace tenon::codegen
