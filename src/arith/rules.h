// Rewrite rules as lines of text: pattern → replacement, for the types they hold in.
//
// In a pattern, x, y, z and b stand for any expression (the same one where the letter repeats), k
// and l for integer or bool constants; 0, 1 and true are constants of the type at that place.
// Operators are those of the text form; commutative ones match in either order. What holds of sums,
// divisions, comparisons and ranges of index is not here: it has its own normal forms (linear.h,
// div_mod.cc, compare.cc).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "arith/expr_ids.h"

namespace tenon {

enum class RuleType : uint8_t {
  kAny,
  kInteger,  // index and data integers, which wrap
  kBool,
  kFloat,
};

struct Rule {
  const char* pattern;
  const char* replacement;
  RuleType type = RuleType::kAny;  // of the pattern's value
};

/// All rules, grouped by root operator.
std::span<const Rule> AllRules();

/// The expression after the first rule that applies at its root; null where none does.
Expr ApplyRules(ExprIds& ids, const Expr& e);

/// A parsed pattern. Exposed for the test that checks every rule.
struct Pattern;
struct PatternDeleter {
  void operator()(Pattern* p) const;
};
using PatternRef = std::unique_ptr<Pattern, PatternDeleter>;
PatternRef ParsePattern(const char* text);
/// The pattern with its letters replaced, in the order x, y, z, b, k, l (null: not used), where its
/// value has this type.
Expr Instantiate(const Pattern& pattern, std::span<const Expr> letters, DType type);

}  // namespace tenon
