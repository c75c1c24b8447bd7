// Where and how the allocations of a function are used: from outside of all blocks.
#pragma once

#include <vector>

#include "arith/analyzer.h"
#include "loop/func.h"

namespace tenon {

/// One access of a buffer, seen from outside of all blocks: their variables are replaced by their
/// bindings.
struct BufferUse {
  std::vector<const StmtNode*>
      path;                       // statements around it, outermost first, the accessing one last
  std::vector<Expr> first, last;  // the box: per dimension, both ends included
  bool reads = false, writes = false;
  /// A reduction's access to its own result: covered by the block's init as long as these hold
  /// (they are the reduce variables' bindings) run over all of their values.
  bool updates = false;
  std::vector<Expr> reduce_bindings;
  std::vector<Expr> guards;  // conditions around it
  bool in_call = false;      // passed to a function, or its address taken
  bool fills = false;        // passed to a function that writes all of the box and reads none
  bool no_box = false;       // what it touches is not known
  bool as_tile = false;      // passed as a tile, which will lie as the function says
  bool told = false;         // passed to a function that is told the strides by dims of their own
};

struct AllocUses {
  const Alloc* alloc = nullptr;
  std::vector<const StmtNode*> path;  // around the Alloc, which is last
  std::vector<BufferUse> uses;        // in program order
};

/// Every allocation of the function, outermost and first ones first. `module` has what it calls.
std::vector<AllocUses> UsesOfAllocs(const PrimFunc& func, const Module& module);

}  // namespace tenon
