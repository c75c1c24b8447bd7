// Where and how the allocations of a function are used: the facts behind compact_buffers.
#pragma once

#include <optional>
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

/// How far apart neighbours are along each dimension of a buffer that is row-major, its rows
/// perhaps longer than what they hold.
std::vector<Expr> StridesOf(const BufferNode& buffer);

/// A dim of a function that is the stride of an operand and nothing else.
struct StrideDim {
  size_t scalar;  // its place among the call's scalars
  size_t dim;     // of the buffer that is passed
};
/// All strides of operand i of the call that are not 1, where each is such a dim; nothing where the
/// function knows one otherwise.
std::optional<std::vector<StrideDim>> StrideDims(const CallFunc& call, const PrimFunc& callee,
                                                 size_t i);

/// Every allocation of the function, outermost and first ones first. `module` has what it calls.
std::vector<AllocUses> UsesOfAllocs(const PrimFunc& func, const Module& module);

}  // namespace tenon
