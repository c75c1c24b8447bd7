// Expressions of the loop IR → source text in a language of the C family, one statement at a time.
//
// An Expr is a DAG: within one statement, what has several uses gets a name, computed before the
// statement; the rest is written in place. A vector is a loop over its lanes: inside it every
// vector expression stands for its lane, scalars are computed before it. The untaken side of a
// Select must touch no memory and divide by nothing: where a side that could needs names, both
// sides become branches.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "arith/analyzer.h"
#include "codegen/c_family/values.h"
#include "codegen/guards.h"
#include "ir/visit.h"
#include "loop/func.h"

namespace tenon::codegen {

/// What an emitter asks of the module that it is part of.
class SourceModule {
 public:
  virtual ~SourceModule() = default;
  virtual Func Find(const std::string& name) const = 0;
  /// The identifier of a function of the module.
  virtual std::string NameOf(const PrimFunc& func) = 0;
  /// The identifier that a call of it needs, with buffers in memories of these address spaces.
  virtual std::string CalleeOf(const PrimFunc& func, const std::vector<std::string>& spaces) {
    (void)spaces;
    return NameOf(func);
  }
  /// The address of a symbol: a function of the module, a blob, or something the linker knows.
  virtual std::string Symbol(const std::string& name) = 0;
  /// A C function that is called with these types; a second call with others is an error.
  virtual bool DeclareC(const std::string& name, const std::string& result,
                        const std::vector<std::string>& args) = 0;
  virtual void Error(const PrimFunc& func, std::string message) = 0;
};

/// A buffer in the source: a pointer or an array.
struct BufferSource {
  std::string name;
  bool is_private = false;   // an array of this function's own whose address nobody else has
  bool is_distinct = false;  // a parameter that overlaps no other (attribute noalias)
  int64_t align = 0;         // bytes that the source aligns it to, where that is more than it asked
  std::string space = "";  // address space of pointers to it, with a blank behind; see GpuSpelling
};

class SourceExpr : private ExprFunctor<SourceText> {
 public:
  SourceExpr(SourceModule& module, const PrimFunc& func, SourceValues& values, Names& names)
      : module_(module), func_(func), values_(values), names_(names) {}

  SourceValues& values() { return values_; }
  Analyzer& facts() { return facts_; }
  void SetFpMode(FpMode mode) {
    fp_ = mode;
    values_.SetApproximate(mode == FpMode::kReassoc);
  }
  void BindVar(const VarNode* var, std::string name) { vars_[var] = std::move(name); }
  void BindBuffer(const BufferNode* buffer, BufferSource source) { buffers_[buffer] = source; }
  const std::string& NameOf(const Buffer& buffer) { return buffers_.at(buffer.get()).name; }
  const std::string& SpaceOf(const Buffer& buffer) { return buffers_.at(buffer.get()).space; }
  bool IsBound(const Buffer& buffer) const { return buffers_.contains(buffer.get()); }
  const std::string& NameOf(const Var& var) { return vars_.at(var.get()); }

  /// Starts a statement made of `roots`, whose lines stand `indent` deep; forgets the one before.
  void Begin(int indent, const std::vector<Expr>& roots);
  /// The lines that must stand before the statement.
  std::string TakeLines();
  /// A scalar. `once`: written where it may be evaluated several times, so it must be a constant or
  /// a name.
  SourceText Emit(const Expr& e, bool once = false);
  /// Lines that compute each lane of a vector into the array `name`.
  void EmitLanes(const Expr& e, const std::string& name);
  /// The whole store.
  void EmitStore(const Buffer& buffer, const std::vector<Expr>& indices, const Expr& value,
                 const Expr& mask);
  void EmitPtrStore(const Call& call);
  void EmitPrefetch(const Call& call);
  /// `as_value`: its result is looked at.
  SourceText EmitExtern(const Call& call, bool as_value);
  /// &buffer[index…] as base + index.
  SourceText ElementAddress(const Buffer& buffer, const std::vector<Expr>& indices);
  void Line(const std::string& text);
  SourceText Unsupported(const std::string& what);
  /// A name like prefix0 that nothing in the function has.
  std::string Fresh(const char* prefix);

 private:
  enum class Kind { kStatement, kLanes, kBranch };
  /// A stretch of lines, its place in another one, and what is known inside it.
  struct Section {
    Section* parent = nullptr;
    Kind kind = Kind::kStatement;
    int indent = 0;
    int32_t lanes = 1;
    std::string lane;  // the loop's variable
    std::string lines;
    std::unordered_map<const ExprNode*, SourceText> memo;
    std::unordered_map<const ExprNode*, std::string> arrays;  // vectors computed beforehand
  };

  SourceText Visit(const Expr& e) override;
  SourceText VisitDefault(const Expr& e) override;
  SourceText VisitIntConst(const IntConst& n, const Expr& e) override;
  SourceText VisitFloatConst(const FloatConst& n, const Expr& e) override;
  SourceText VisitStringConst(const StringConst& n, const Expr& e) override;
  SourceText VisitVar(const VarNode& n, const Expr& e) override;
  SourceText VisitUnary(const Unary& n, const Expr& e) override;
  SourceText VisitBinary(const Binary& n, const Expr& e) override;
  SourceText VisitSelect(const Select& n, const Expr& e) override;
  SourceText VisitCast(const CastExpr& n, const Expr& e) override;
  SourceText VisitLoad(const Load& n, const Expr& e) override;
  SourceText VisitRamp(const Ramp& n, const Expr& e) override;
  SourceText VisitBroadcast(const Broadcast& n, const Expr& e) override;
  SourceText VisitCall(const Call& n, const Expr& e) override;

  const SourceText* Known(const Expr& e) const;
  const std::string* ArrayOf(const Expr& e) const;
  Section* LanesOf() const;  // the innermost loop over lanes; null outside
  void Open(Section* section, Kind kind);
  void OpenLanes(Section* section, int32_t lanes);
  void CloseLanes(Section* section);
  SourceText Named(const Expr& e, const SourceText& value);
  SourceText Branches(const Select& n);
  std::optional<SourceText> Contracted(const Binary& n);
  SourceText Reduce(const Call& n);
  SourceText PtrLoad(const Call& n);
  SourceText OnlyOnCpu(const Call& call);
  SourceText Element(const Buffer& buffer, const std::vector<Expr>& indices);
  bool IsUsable(const Buffer& buffer, const std::vector<Expr>& indices);
  void StoreLanes(const Buffer& buffer, const std::vector<Expr>& indices, const Expr& value,
                  const Expr& mask);
  const WideSpelling* WideAccess(const Buffer& buffer, const Expr& index);
  std::string ArrayDeclaration(DType type, const std::string& name);
  void MoveWide(const WideSpelling& wide, DType type, const std::string& array,
                const Buffer& buffer, const Expr& index, bool writes);
  bool LoadWide(const Expr& e);
  bool LoadsWide(const Expr& e);
  bool LoadWideWhere(const Expr& e);
  bool ReadsWhatIsWritten(const Buffer& buffer, const std::vector<Expr>& indices, const Expr& e);
  bool MayOverlap(const Buffer& a, const Buffer& b) const;
  void IntoArray(const Expr& e);
  std::string ToMemory(DType type, const SourceText& v);

  SourceModule& module_;
  const PrimFunc& func_;
  SourceValues& values_;
  Names& names_;
  Analyzer facts_;  // of variables of index
  FpMode fp_ = FpMode::kStrict;
  std::unordered_map<const VarNode*, std::string> vars_;
  std::unordered_map<const BufferNode*, BufferSource> buffers_;
  // Of the statement:
  Section statement_;
  Section* now_ = &statement_;
  std::unordered_map<const ExprNode*, int> uses_;
  Guards guards_;
  int next_ = 0;  // of names
};

}  // namespace tenon::codegen
