// What the primitives on reductions say and ask alike.
#pragma once

#include <algorithm>

#include "dependence/body.h"
#include "ir/visit.h"

namespace tenon::primitive {

using LoopList = std::vector<const For*>;

inline Diagnostic NotReduction(const Block& block) {
  return OfBlock(block.name, "the block is not a reduction with an init");
}

inline Diagnostic Mixed(const Block& block, const For* loop) {
  return OfBlock(block.name,
                 "loop " + loop->var->name + " runs over spatial and reduce variables at once");
}

inline bool UsesLoops(const Expr& e, const LoopList& loops) {
  return std::any_of(loops.begin(), loops.end(),
                     [&](const For* loop) { return UsesVar(e, loop->var.get()); });
}

}  // namespace tenon::primitive
