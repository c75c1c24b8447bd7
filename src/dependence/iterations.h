// Which iterations of loops touch the same elements, judged on what blocks declare.
#pragma once

#include <vector>

#include "dependence/region.h"

namespace tenon {

/// True when every element of the buffer that `accesses` (of one buffer, all under the outermost of
/// `loops`) touch is touched in one iteration of the nest `loops` only. Then the order of these
/// iterations does not matter to the buffer.
bool ElementFixesLoops(const Body& body, const std::vector<Body::Access>& accesses,
                       const std::vector<const For*>& loops);

/// True for accesses by one block, all of one region: to its accumulator, or to elements that its
/// spatial variables tell apart.
bool IsOneSpatialBlock(const std::vector<Body::Access>& accesses);

/// One of `loops`, all around the block, whose iterations run the same reduction again (those of
/// the block's spatial loops do not, given that the others stand still); null when there is none.
const For* RepeatingLoop(const Body& body, const Body::Place& block,
                         const std::vector<const For*>& loops);

/// The buffers written under a statement, each once, with all accesses to them there.
std::vector<std::vector<Body::Access>> WrittenUnder(const Body& body, const Node* stmt);

/// Loops (of `loops`) whose variables the bindings of that kind mention.
std::vector<const For*> LoopsOfKind(const Block& block, IterKind kind,
                                    const std::vector<const For*>& loops);
bool BindsLoop(const Block& block, IterKind kind, const For* loop);

}  // namespace tenon
