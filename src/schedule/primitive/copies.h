// Copies of statements under new names.
#pragma once

#include "dependence/body.h"

namespace tenon::primitive {

/// The statement with everything that it binds (loops, blocks, iteration variables, lets,
/// allocations) renamed to name + suffix, or a name near that. `vars` replaces free variables on
/// the way. `renamed`, if any, gets the names of loops and blocks with those of their copies.
Stmt CopyRenamed(const Stmt& stmt, const std::string& suffix, Body* body,
                 std::unordered_map<const VarNode*, Expr> vars = {},
                 std::vector<std::pair<std::string, std::string>>* renamed = nullptr);

}  // namespace tenon::primitive
