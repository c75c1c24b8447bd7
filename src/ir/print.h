// The text form of expressions, buffers, layouts and regions; src/loop/print.h adds statements and
// functions.
//
//   constants   3 (index)  3i64  0f32  1.5e-05f64  inf.f32  nan.bf16  true  "text"
//   operators   as in C, with their usual precedence; min(a, b), bitand(a, b), …
//   casts       f32(x); the lanes follow x
//   loads       A[i, j]   masked: A[ramp(i, 1, 8) where m]
//   vectors     ramp(base, stride, 8)  broadcast(x, 8)  scalable: ramp(base, stride, vscale * 4)
//   calls       exp(x)   with a stated type: extern<i32>("f", x)
//   select      select(c, a, b)
//   regions     A[i, 0..m, j..+4]   one index, [0, m), [j, j + 4); a whole buffer is just A
//   buffers     A: f32[m, 64] layout (i, j) -> (i / 16, j, i % 16) strides (…) in shared align 64
//   layouts     (i, j) -> (expr size extent on threadIdx.x, …) replicas 2 padding -inf
//               `size _` is a derived extent; `padding 0` is not written
//
// Names are [A-Za-z_][A-Za-z0-9_.]*; anything else, and what would read as a type or a constant,
// stands in backquotes with the escapes of JSON. Two variables or buffers of one name in the same
// scope print as x and x_1.
// The coordinates of a layout hide names outside that the layout does not use.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/buffer.h"

namespace tenon {

/// The text of an expression, buffer (its declaration), layout, range or region. A statement held
/// as a plain NodeRef gives only its kind in angle brackets here: see Print in loop/print.h.
std::string ToString(const NodeRef& node);

/// True when `word` can be written without quotes where a variable or a buffer is named.
bool IsPlainName(std::string_view word);
/// `word` itself when it is a plain name, else a JSON string: how names that are attributes are
/// written.
std::string WordText(const std::string& word);

/// Writes nodes to a growing text; remembers which name each variable and buffer in scope was
/// given.
class IrPrinter {
 public:
  std::string Take() { return std::move(out_); }
  void PrintNode(const NodeRef& node);

 protected:
  static constexpr int kUnaryPrecedence = 9;

  /// `min_precedence`: an operator that binds weaker is put in parentheses.
  void PrintExpr(const Expr& e, int min_precedence = 0);
  void PrintList(const std::vector<Expr>& list);
  /// "a..b" or "a..+n"; with `point`, a range of one is just its place.
  void PrintRange(const Expr& min, const Expr& extent, bool point);
  void PrintRegion(const RegionNode& region);
  void PrintAccess(const Buffer& buffer, const std::vector<Expr>& indices, const Expr& mask);
  /// "name: f32[…] …", the name already declared.
  void PrintBufferDecl(const BufferNode& buffer);
  void PrintLayout(const LayoutNode& layout);

  /// Gives `node` a name that nothing in scope has. Valid until Leave of an earlier mark.
  void Declare(const NodeRef& node, const std::string& name);
  /// The name in scope; a free variable or buffer gets one that lasts.
  std::string NameOf(const NodeRef& node, const std::string& name);
  size_t Enter() const { return scope_.size(); }
  void Leave(size_t mark);

  std::string out_;

 private:
  struct Declared {
    const Node* node;
    std::string name, shadowed;
  };
  void PrintFloat(const FloatConst& c);
  void PrintInt(const IntConst& c);
  void PrintUnary(const Unary& e, int min_precedence);
  void PrintBinary(const Binary& e, int min_precedence);
  void PrintCall(const Call& e);
  void PrintLanes(DType type);
  std::string Unused(const std::string& name) const;
  std::unordered_set<std::string> NamesMentioned(const LayoutNode& layout);

  std::unordered_map<const Node*, std::string> names_;
  std::unordered_set<std::string> used_;
  std::vector<Declared> scope_;
};

}  // namespace tenon
