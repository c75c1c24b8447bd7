// The loop IR that finds out, when a function is called, whether an output's memory meets that of
// another argument.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "loop/func.h"
#include "loop/pass/stmt_list.h"

namespace tenon {

/// What is known of one argument when the function is called, in memory: how many bytes it has, an
/// i64, and the address of its name. Where it begins is in its slot.
inline constexpr int64_t kFactBytes = 16, kFactName = 8;
/// Appends to `list` what stores one at the address `fact`.
void StoreFact(const Expr& fact, const Expr& bytes, const Expr& name, StmtList* list);

/// The function that CheckApart calls: one for a whole module.
inline constexpr const char* kFindOverlap = "host.find_overlap";
Func FindOverlapFunc(const TargetRef& target);

/// Appends to `list` a test of `count` arguments at once, the outputs being the last of them, and
/// `fail` of what two messages parts name: an output, and what it overlaps. `slots` and `facts` are
/// the addresses of those of the first argument. Code grows with nothing; time, but for a factor of
/// its logarithm, with the number of arguments.
void CheckApart(size_t count, size_t num_outputs, const Expr& slots, const Expr& facts,
                const std::function<Stmt(Expr output, Expr other)>& fail, StmtList* list);

}  // namespace tenon
