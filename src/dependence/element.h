// Which iterations of two loops touch one element.
#pragma once

#include <vector>

#include "arith/analyzer.h"

namespace tenon {

/// An iteration of a loop from 0, by its variable.
struct Iteration {
  Var var;
  Expr extent;
};

/// True when equal elements of a buffer mean equal iterations: an index is shown from which the
/// number of the iteration, x for `a` and y for `b`, can be read off by division and remainder.
/// `analyzer` knows the variables' ranges.
bool ElementTells(const BufferNode& buffer, const std::vector<Expr>& a, const Iteration& x,
                  const std::vector<Expr>& b, const Iteration& y, Analyzer* analyzer);

}  // namespace tenon
