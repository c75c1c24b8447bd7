// Whether what is read comes from the same iteration, judged on what blocks declare.
#pragma once

#include <optional>

#include "dependence/region.h"

namespace tenon {

/// True when, in each iteration of the loop `scope`, every read of the buffer finds what the same
/// iteration has written. With `whole`, the same of each run of the statement `scope`, loop or not.
bool IsCoveredIn(const Body& body, const Buffer& buffer, const Node* scope, bool whole = false);
/// The first read that is not known to; nothing where there is none.
std::optional<Body::Access> FirstUncovered(const Body& body, const Buffer& buffer,
                                           const Node* scope, bool whole = false);

/// True when one block is known to have written all that `read` declares, before it and in the same
/// iteration of the loops around both.
bool IsWrittenBefore(const Body& body, const Body::Access& read);

/// True when no block outside `stmt` touches the buffer, but in loops that have it privately.
bool AllUsesUnder(const Body& body, const Buffer& buffer, const Node* stmt);

/// True when a loop around the place, but not around `stmt`, has the buffer privately.
bool HasPrivately(const Body::Place& place, const Buffer& buffer, const Node* stmt);

}  // namespace tenon
