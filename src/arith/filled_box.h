// Do index expressions take every value of a box? (Which is to say: is what a nest writes without a
// hole?)
//
// The mirror of injective.h: there the digits of a number must not overlap, here they must leave no
// gap. Guards that end a sum of variables (a * 3 + b < 4, of an uneven split inside another) make
// one variable of it, which takes every value below the end.
#pragma once

#include <optional>
#include <vector>

#include "arith/analyzer.h"

namespace tenon {

/// Index expressions over variables that run over their domains, independently of each other,
/// wherever the guards hold. The domains start from 0, or the variables are not in the guards; the
/// analyzer knows them too.
struct Iterations {
  std::vector<Expr> indices;
  IntervalMap domain;
  std::vector<Expr> guards;
};

/// The box of which indices[d] + [0, extents[d]), over all dimensions d, take every point and
/// nothing else; nothing where it is not known to be one.
std::optional<std::vector<ExprInterval>> FilledBox(Iterations iterations,
                                                   const std::vector<Expr>& extents,
                                                   Analyzer* analyzer);

}  // namespace tenon
