// One function of the loop IR → one function in a language of the C family. On a CPU for a team of
// one worker: its rank is 0, barriers are nothing and atomics plain operations. On a GPU
// (Language::gpu) what a thread runs: loops over thread axes become the thread's place on them.
#pragma once

#include <map>
#include <set>

#include "codegen/c_family/expr.h"
#include "intrin/tile_intrinsic.h"

namespace tenon::codegen {

/// The buffers that a function, or one that it calls, may write through. `module` finds the
/// callees.
class WrittenBuffers {
 public:
  explicit WrittenBuffers(SourceModule& module) : module_(module) {}
  const std::set<const BufferNode*>& Of(const PrimFunc& func);

 private:
  SourceModule& module_;
  std::unordered_map<const PrimFunc*, std::set<const BufferNode*>> known_;
};

/// What is decided about a function as a whole, before its text.
struct FunctionForm {
  int index_bits = 64;  // 32: every index of the function fits
  std::string name;     // "": the module's for the function
  /// The address spaces of the buffer parameters; none: the language has none.
  std::vector<std::string> spaces;
  /// Places of shared buffers in the language's dynamic array, in bytes; those that are not here
  /// are arrays of their own.
  std::map<const BufferNode*, int64_t> dynamic_shared;
};

class SourceFunction {
 public:
  SourceFunction(SourceModule& module, const PrimFunc& func, const Language& language,
                 Helpers* helpers, WrittenBuffers* written, FunctionForm form = {});

  /// "void name(const float* a, …)" without qualifiers, which take `before` columns.
  std::string Signature(size_t before = 10);
  /// The whole definition, `qualifiers` before it.
  std::string Emit(const std::string& qualifiers);

 private:
  struct Braces {
    std::vector<std::string> names;
  };

  void EmitStmt(const Stmt& s);
  void EmitSeq(const Seq& s);
  void EmitFor(const For& s);
  std::string PlaceOnAxis(const For& s, const char* text) const;
  void EmitThreadFor(const For& s);
  bool IndexesRegisters(const For& s) const;
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
  void EmitAtomic(const Atomic& s);
  void EmitGpuAtomic(const Atomic& s);
  void EmitPlainUpdate(const Atomic& s);
  void EmitSync(Level level);
  void EmitBarrier(const Barrier& s);
  void EmitRoles(const Roles& s);
  void EmitRegisters(int64_t registers);
  bool IsTensorMap(const Buffer& param) const;
  bool BindTensorMap(const Buffer& param);
  void FetchTensorMaps();
  SourceText ArgumentOf(const PrimFunc& callee, size_t i, const Region& region);

  void BeginTileIntrinsic(const Emission& emission);
  void EmitWarpOperation(const Emission& emission);
  void BindParams();
  void BindScalar(const Var& var);
  void DeclareShared();
  void DeclareArray(const Buffer& b, const Stmt& body);
  std::string BindIndex(const Var& var);
  void FindUses();
  void Begin(const std::vector<Expr>& roots) { exprs_.Begin(indent_, roots); }
  void Flush() { out_ += exprs_.TakeLines(); }
  void Line(const std::string& text);
  void OpenBlock(const std::string& head);
  void CloseBlock(const std::string& tail = "}");
  std::string Declare(const std::string& wanted);
  void DefineVar(const Var& var, const Expr& value);
  SourceText RegionAddress(const Region& region);
  std::string MessagePart(const Expr& part);
  void CheckStatus(const SourceText& call);
  std::string PointerTo(const Buffer& buffer);
  void Unsupported(const std::string& what) { exprs_.Unsupported(what); }

  SourceModule& module_;
  const PrimFunc& func_;
  const Language& language_;
  WrittenBuffers& written_;
  Names names_;
  SourceValues values_;
  SourceExpr exprs_;
  FunctionForm form_;
  std::vector<std::string> params_;
  std::vector<std::string> narrowed_;  // lines that take indices down to 32 bits
  std::set<const Node*> used_;  // variables and buffers that the body mentions; buffers: reads
  std::vector<Braces> scopes_{1};
  std::string out_;
  int indent_ = 1;
  FpMode fp_ = FpMode::kStrict;
};

}  // namespace tenon::codegen
