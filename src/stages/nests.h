// The blocks of a function with the loops around them.
#pragma once

#include <map>
#include <vector>

#include "loop/func.h"

namespace tenon::stages {

/// A block that is in no other, with the loops around it, outermost first.
struct Nest {
  const Block* block;
  std::vector<const For*> loops;

  /// The loop that a variable of the block is bound to, or null.
  const For* LoopOf(size_t iter) const;
};

/// All of them, in program order. They live as long as the function.
std::vector<Nest> NestsOf(const Func& func);
/// How many blocks each loop is around: one that is around several is no loop of a stage.
std::map<const For*, int> BlocksUnder(const std::vector<Nest>& nests);

}  // namespace tenon::stages
