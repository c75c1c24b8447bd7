// What every parser of an IR text shares: tokens with lookahead, several located diagnostics per
// run, names in scope, types, attributes, expressions, buffers.
//
// A parser is a recursive descent over on-demand tokens. Its depth is bounded by kMaxDepth, and so
// is the depth of what it builds (a + b + c + … nests without brackets), so hostile text ends in a
// diagnostic. An error is recorded and thrown as Abort to the nearest list of statements, which
// skips to the next statement; nothing is thrown out of the public functions. Every check of the
// nodes' makers is made here first, with a message for people.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/buffer.h"
#include "ir/parse_lexer.h"
#include "ir/place.h"
#include "support/expected.h"

namespace tenon {

class TextParser {
 public:
  /// Texts longer than this are refused.
  static constexpr size_t kMaxText = size_t{64} << 20;
  static constexpr size_t kMaxErrors = 20;

  TextParser(std::string_view text, std::string file);
  Expected<Expr> WholeExpr(const std::vector<NodeRef>& scope);

 protected:
  struct Abort {};  // the error is in errors_

  /// An expression while it is read. A literal without a type waits for one.
  struct Operand {
    Expr expr;
    int depth = 1;
    std::string_view literal = {};  // digits; empty: the type is settled
    bool negative = false;
    Token at = {};
  };

  // ---- tokens ----
  const Token& Peek(size_t ahead = 0);
  Token Take();
  bool At(std::string_view text, size_t ahead = 0);
  bool Accept(std::string_view text);
  Token Expect(std::string_view text, std::string_view where);
  [[noreturn]] void Fail(const Token& at, std::string message);
  [[noreturn]] void FailLimit(const Token& at, std::string message);
  /// "expected … but got 'x'".
  [[noreturn]] void FailExpected(std::string_view expected);
  SourceLoc Loc(const Token& at) const { return {file_, at.line, at.column, ""}; }

  /// Counts one level of nesting while it lives.
  class Nest {
   public:
    explicit Nest(TextParser* parser);
    ~Nest() { --parser_->depth_; }
    Nest(const Nest&) = delete;

   private:
    TextParser* parser_;
  };

  /// item, item, … up to `close`, which is taken too.
  template <class F>
  void List(std::string_view close, std::string_view where, F&& item) {
    if (Accept(close)) return;
    do {
      item();
    } while (Accept(","));
    Expect(close, where);
  }

  // ---- words and numbers ----
  /// A name where a variable or buffer is declared.
  std::string TakeName(std::string_view what);
  /// A word or a string: how names that are attributes are written.
  std::string TakeWord(std::string_view what);
  std::string TakeString(std::string_view what);
  /// Words of tables; any other is an error that lists them.
  Scope TakeScope();
  ThreadAxis TakeThreadAxis();
  Place TakePlace();
  /// A plain integer, with sign.
  int64_t TakeInt(std::string_view what);
  DType TakeType();
  Attrs TakeAttrs();
  /// At `{ word :`, which no list of statements starts with.
  bool AtAttrs();

  // ---- names in scope ----
  /// `hide`: a name outside may be hidden; otherwise it is an error.
  void Declare(const Token& at, const std::string& name, const NodeRef& node, bool hide = false);
  /// Names whose declaration failed: using them is no further error.
  void Poison(const std::string& name) { poisoned_.insert(name); }
  NodeRef Lookup(const Token& at, const std::string& name);
  Buffer TakeBuffer();
  size_t Enter() const { return scope_.size(); }
  void Leave(size_t mark);

  // ---- expressions ----
  Operand TakeOperand() { return TakeBinary(1); }
  /// Settles a literal as `type` where that is possible.
  Expr Settle(Operand operand, DType type);
  /// Of any type; a literal is index, or f32 when it has a point.
  Expr TakeExpr();
  Expr TakeExpr(DType type, std::string_view what);
  Expr TakeIndex(std::string_view what) { return TakeExpr(DType::Index(), what); }
  std::vector<Expr> TakeExprs(std::string_view close, std::string_view where);
  /// A literal among the two takes the other's type.
  void Unify(Operand* a, Operand* b);

  /// An operator as it is spelled between operands or before them: +, min, …
  BinaryOp TakeBinaryOp();

  // ---- buffers ----
  struct Access {
    Buffer buffer;
    std::vector<Expr> indices;
    Expr mask;
    DType lanes;  // index with the lanes of the access
    int depth = 0;
  };
  /// buffer[i, j where mask]
  Access TakeAccess();
  /// a..b, a..+n, or just a where `point`.
  Range TakeRange(DType type, bool point);
  Region TakeRegion();
  /// After "name:": f32[…] layout … strides … in … align …
  Buffer TakeBufferType(const std::string& name);

  Diagnostics errors_;

 private:
  friend class Nest;
  [[noreturn]] void Report(Diagnostic error);
  AttrValue TakeAttrValue();
  AttrValue TakeAttrList();
  Operand TakeBinary(int min_precedence);
  Operand TakeUnary();
  Operand TakePrimary();
  Operand TakeNumber(bool negative);
  std::optional<Operand> TakeNamedConstant(bool negative);
  Operand TakeFunction(const std::string& name);
  Operand TakeRampOrBroadcast(bool ramp);
  Operand TakeIntrinsic(Intrinsic intrinsic);
  Operand TakeSelect();
  Operand TakeCast();
  Operand TakeReference();
  Operand Constant(const Token& at, std::string_view digits, bool negative, DType type);
  Operand Built(const Token& at, Expr e, int depth);
  Operand MakeUnary(const Token& at, UnaryOp op, Operand value);
  Operand MakeBinary(const Token& at, BinaryOp op, Operand a, Operand b);
  std::vector<Operand> TakeArguments();
  int32_t TakeLanes(bool* scalable);
  Expr ExtentTo(const Token& at, const Expr& min, const Expr& end);
  Layout TakeLayout();

  std::string file_;
  bool end_reported_ =
      false;  // an end of the text too early is one error, however much it leaves open
  Lexer lexer_;
  std::vector<Token> ahead_;
  int depth_ = 0;
  std::unordered_map<std::string, NodeRef> names_;
  std::unordered_set<std::string> poisoned_;
  struct Declared {
    std::string name;
    NodeRef hidden;
  };
  std::vector<Declared> scope_;

 protected:
  /// Reads on from a place remembered, to look at a list twice.
  struct Bookmark {
    Lexer lexer;
    std::vector<Token> ahead;
  };
  Bookmark Here() const { return {lexer_, ahead_}; }
  void GoTo(Bookmark mark) {
    lexer_ = mark.lexer;
    ahead_ = std::move(mark.ahead);
  }
};

}  // namespace tenon
