// Loops that fill `shared` memory and whose iterations any thread may do: a part of bind_threads.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "arith/analyzer.h"
#include "loop/func.h"

namespace tenon {

/// A perfect nest of loops around a body that writes nothing but `shared` memory. Iterations of
/// the dealt loops touch different elements of it, so that they may be done in any order, each
/// with all of the kept loops inside: a reduction's stay with the element that they add to.
struct SharedNest {
  std::vector<const For*> dealt, kept;  // outermost first
  Stmt body;
  Expr size;                        // iterations of the dealt loops
  std::vector<std::string> filled;  // names of what is written
};

/// The nest that begins with the loop `stmt`; nothing where none of its loops can be dealt out.
/// The analyzer is told the ranges of the loops in it.
std::optional<SharedNest> FindSharedNest(const Stmt& stmt, const Module& module,
                                         Analyzer* analyzer);

/// True where the statement has a loop over a thread axis, a virtual one included.
bool HasThreadLoop(const Stmt& stmt);

}  // namespace tenon
