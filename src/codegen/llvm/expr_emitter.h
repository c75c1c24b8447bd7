// Expressions of the loop IR → LLVM values at a builder's position.
//
// An Expr is a DAG: within one statement each node is emitted once. The untaken side of a Select
// must touch no memory and divide by nothing: sides that could are emitted under a branch (scalar
// condition) or under a lane mask, in a scope of their own, whose values nothing outside may use.
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "arith/analyzer.h"
#include "codegen/guards.h"
#include "codegen/llvm/module_emitter.h"
#include "codegen/llvm/values.h"
#include "codegen/not_nan.h"
#include "ir/visit.h"

namespace tenon::codegen {

/// Where a buffer lives.
struct BufferPlace {
  llvm::Value* base = nullptr;
  int64_t align = 1;        // bytes the base is known to be aligned to
  bool is_private = false;  // ours alone and never out of reach: an alloca
};

/// The values of this worker's place in its team; null where the function has none.
struct TeamValues {
  llvm::Value* rank = nullptr;
  llvm::Value* size = nullptr;
  llvm::Value* team = nullptr;
};

class ExprEmitter : private ExprFunctor<llvm::Value*> {
 public:
  ExprEmitter(ModuleEmitter& module, const PrimFunc& func, llvm::IRBuilder<>& ir)
      : module_(module), func_(func), ir_(ir), values_(ir, module.target()), not_nan_(func) {}

  ValueBuilder& values() { return values_; }
  Analyzer& facts() { return facts_; }
  void BindVar(const VarNode* var, llvm::Value* value) { vars_[var] = value; }
  void BindBuffer(const BufferNode* buffer, BufferPlace place) { buffers_[buffer] = place; }
  void SetTeam(TeamValues team) { team_ = team; }
  const TeamValues& team() const { return team_; }

  /// Forgets the values of the statement before.
  void BeginStatement();
  llvm::Value* Emit(const Expr& e);
  void EmitStore(const Buffer& buffer, const std::vector<Expr>& indices, const Expr& value,
                 const Expr& mask);
  /// The bytes from a region's first element on as a value of `type`, and back.
  llvm::Value* LoadAt(const Region& region, llvm::Type* type);
  void StoreAt(const Region& region, llvm::Value* value);
  /// The address of buffer[index…] (scalar indices).
  llvm::Value* ElementAddress(const Buffer& buffer, const std::vector<Expr>& indices);
  /// The value that a call of C returns; undefined for handle-typed calls of void functions.
  llvm::Value* EmitExtern(const Call& call, bool has_result = true);
  void EmitPtrStore(const Call& call);
  void EmitPrefetch(const Call& call);

  /// Records an error and gives a stand-in of the type.
  llvm::Value* Unsupported(const std::string& what, DType type);

 private:
  struct Access;
  struct Affine {
    llvm::Value* base = nullptr;  // null: not affine
    int64_t stride = 0;
    int64_t multiple = 1;  // divides the base
  };
  /// What has been computed on the way to here: by node, and what touches memory also by form.
  struct Memo {
    std::unordered_map<const ExprNode*, llvm::Value*> values;
    std::vector<std::pair<Expr, llvm::Value*>> loads, branches;
  };

  llvm::Value* Visit(const Expr& e) override;
  llvm::Value* VisitDefault(const Expr& e) override;
  llvm::Value* VisitIntConst(const IntConst& n, const Expr& e) override;
  llvm::Value* VisitFloatConst(const FloatConst& n, const Expr& e) override;
  llvm::Value* VisitStringConst(const StringConst& n, const Expr& e) override;
  llvm::Value* VisitVar(const VarNode& n, const Expr& e) override;
  llvm::Value* VisitUnary(const Unary& n, const Expr& e) override;
  llvm::Value* VisitBinary(const Binary& n, const Expr& e) override;
  llvm::Value* VisitSelect(const Select& n, const Expr& e) override;
  llvm::Value* VisitCast(const CastExpr& n, const Expr& e) override;
  llvm::Value* VisitLoad(const Load& n, const Expr& e) override;
  llvm::Value* VisitRamp(const Ramp& n, const Expr& e) override;
  llvm::Value* VisitBroadcast(const Broadcast& n, const Expr& e) override;
  llvm::Value* VisitCall(const Call& n, const Expr& e) override;

  /// Emits under a lane mask (null: none) in a scope of its own.
  llvm::Value* EmitGuarded(const Expr& e, llvm::Value* mask);
  /// The value of `then` where the scalar condition holds, else of `otherwise`, by a branch.
  llvm::Value* Branch(llvm::Value* condition, const std::function<llvm::Value*()>& then,
                      const std::function<llvm::Value*()>& otherwise);
  /// The value of the same load or branch, if all lanes of the guard have it already; else null.
  llvm::Value* Known(const Expr& e, std::vector<std::pair<Expr, llvm::Value*>> Memo::* list);
  /// A register at a place that is known.
  bool IsSafe(const Load& load);

  const BufferPlace* PlaceOf(const Buffer& buffer);
  Affine AsAffine(const Expr& index);
  /// A comparison of index vectors as one of lane numbers; null where it has no such form.
  llvm::Value* CompareLanes(const Binary& n);
  llvm::Value* LanesBelow(llvm::Value* bound, int32_t lanes);
  Affine AsAffineBinary(const Binary& b);
  Access Locate(const Buffer& buffer, const std::vector<Expr>& indices, bool in_bounds);
  llvm::Value* LoadFrom(const Access& access, DType type, llvm::Value* mask);
  llvm::Value* LoadHalves(const Load& n);
  llvm::Value* LoadNear(const Load& n);
  llvm::Value* LoadVector(const Access& access, llvm::Type* type, llvm::Value* mask);
  void StoreVector(const Access& access, llvm::Value* value, llvm::Value* mask);
  llvm::Value* EmitIntrinsic(const Call& n);

  ModuleEmitter& module_;
  const PrimFunc& func_;
  llvm::IRBuilder<>& ir_;
  ValueBuilder values_;
  Analyzer facts_;  // of variables of index
  const NotNan not_nan_;
  TeamValues team_;
  std::unordered_map<const VarNode*, llvm::Value*> vars_;
  std::unordered_map<const BufferNode*, BufferPlace> buffers_;
  std::vector<Memo> scopes_{1};
  Guards guards_{[this](const Load& load) { return IsSafe(load); }};
  llvm::Value* guard_ = nullptr;  // lane mask that all memory accesses of the moment stand under
};

}  // namespace tenon::codegen
