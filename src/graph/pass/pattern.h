// Patterns over graphs: what a decomposed operator looks like, with the freedoms that exporters
// take (the order of factors and terms, dividing by a constant instead of multiplying, numbers
// computed from numbers).
//
// A pattern describes how a value is computed, from its end back to its operands. Values between
// are not asked who else reads them: operators are pure, so a match is right wherever it is found;
// whether it pays is the pass's business.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "graph/graph.h"

namespace tenon::graph {

struct PatternNode;
using Pattern = std::shared_ptr<const PatternNode>;

/// Any value. Slots are the pass's names: every occurrence of one must be the same value.
Pattern Any(int slot);
/// What `p` matches, remembered under `slot`.
Pattern As(int slot, Pattern p);
/// A one-element float constant, or one computed from such. Every occurrence of a slot must be the
/// same number.
Pattern AnyNumber(int slot);
/// Such a constant that is `number` but for the rounding of a float.
Pattern Number(double number);
/// The output of an operator of these operands, in order, none left out. Attributes are not looked
/// at.
Pattern Op(OpKind op, std::vector<Pattern> operands);
/// A product (sum) of all of these, by any tree of mul and div (add and sub), in any order.
Pattern Product(std::vector<Pattern> factors);
Pattern Sum(std::vector<Pattern> terms);
/// 1 / p: a divisor in a Product, reciprocal, 1 / x, or for a square root a power of -1/2.
Pattern Inverse(Pattern p);
/// The first of these that lets the whole match.
Pattern OneOf(std::vector<Pattern> alternatives);

struct Match {
  std::map<int, ValueId> values;
  std::map<int, double> numbers;

  bool Has(int slot) const { return values.contains(slot); }
  /// The slot must have been matched.
  ValueId value(int slot) const { return values.at(slot); }
  double Number(int slot, double fallback) const {
    auto it = numbers.find(slot);
    return it == numbers.end() ? fallback : it->second;
  }
};

/// Does `p` describe how `v` is computed? Takes time bounded by the pattern's size (its Products
/// are small).
std::optional<Match> FindMatch(const Graph& g, ValueId v, const Pattern& p);

/// The number that a one-element float value always has: a constant, or computed from a few such.
std::optional<double> ScalarOf(const Graph& g, ValueId v);

/// Equal but for the rounding of a float (and exactly, where one is 0).
bool Close(double a, double b);

}  // namespace tenon::graph
