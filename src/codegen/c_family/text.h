// Pieces of source in a language of the C family: an expression's text with what is needed to put
// it into a larger one, and names that do not clash.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace tenon::codegen {

/// How tightly an expression's outermost operator binds; C's order, the looser ones first.
enum class Binding : int {
  kConditional,
  kOr,
  kAnd,
  kBits,  // &, | and ^ are always put into parentheses by the others
  kCompare,
  kAdd,
  kMultiply,
  kUnary,
  kPrimary,
};

struct SourceText {
  std::string text;
  Binding binding = Binding::kPrimary;
  int depth = 0;            // of nesting
  bool is_literal = false;  // of integers: its C type may be int whatever the IR's type is

  /// The text, in parentheses where it binds looser than `least`.
  std::string As(Binding least) const { return binding < least ? "(" + text + ")" : text; }
};

/// Identifiers of one scope and those within it.
class Names {
 public:
  /// `reserved` holds words separated by blanks.
  explicit Names(std::string_view reserved);
  /// An identifier like `wanted` that nothing has yet.
  std::string Take(std::string_view wanted);
  void Give(const std::string& name) { used_.erase(name); }
  bool IsFree(const std::string& name) const { return !used_.count(name); }
  void Reserve(const std::string& name) { used_.insert(name); }

 private:
  std::set<std::string> used_;
};

/// A string literal with its quotes.
std::string QuoteC(std::string_view text);

}  // namespace tenon::codegen
