// The loop IR that finds out, when a function is called, whether an output's memory meets that of
// another argument.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "loop/func.h"
#include "loop/pass/stmt_list.h"

namespace tenon {

/// What one argument occupies when the function is called: i64s, the first address and the one
/// behind the last; equal where it has no elements.
struct Occupied {
  std::string name;
  Expr start, end;
};

/// The function that CheckApart calls: one for a whole module.
inline constexpr const char* kFindOverlap = "host.find_overlap";
Func FindOverlapFunc(const TargetRef& target);

/// Appends to `list` a test of all arguments at once, the outputs being the last of them, and
/// `fail` of what two messages parts name: an output, and what it overlaps. Code and, but for a
/// factor of its logarithm, time grow with the number of arguments.
void CheckApart(const std::vector<Occupied>& arguments, size_t num_outputs,
                const std::function<Stmt(Expr output, Expr other)>& fail, StmtList* list);

}  // namespace tenon
