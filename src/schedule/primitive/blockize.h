// A nest as one block.
#pragma once

#include "schedule/analysis/nest.h"

namespace tenon::primitive {

/// The nest as a block, still without a place: what blockize puts there. Its body is the nest in
/// terms of the block's iteration variables; `inner` takes the variables of the loops around to
/// those. `in_order`: serial loops around whose iterations may write the same elements (versions of
/// a pipelined buffer) are no obstacle, and the block says that they run in order.
struct Blockized {
  Block block;
  std::unordered_map<const VarNode*, Expr> inner;
};
Expected<Blockized> MakeBlock(Body* body, const Place& loop, const std::string& suffix,
                              bool in_order = false);

}  // namespace tenon::primitive
