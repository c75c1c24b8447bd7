// Accesses to a buffer, turned into accesses to another that stores the same elements elsewhere.
#pragma once

#include <functional>

#include "schedule/analysis/state.h"

namespace tenon::primitive {

struct Retarget {
  Buffer from, to;
  /// Where an element of `from` is in `to`.
  std::function<std::vector<Expr>(const std::vector<Expr>&)> element;
  /// What of `to` a box of `from` is in.
  std::function<std::vector<Range>(const std::vector<Range>&)> box;
};

/// The statement with all loads, stores and declared regions of the one buffer on the other.
Stmt Apply(const Retarget& retarget, const Stmt& stmt);

/// Why the buffer's elements cannot be put elsewhere: it is not made in the function, has a layout
/// of its own, or is used by more than loads and stores.
std::optional<Diagnostic> NotRetargetable(const Body& body, const Buffer& buffer);

/// Why the buffer cannot be stored otherwise: a call is told its strides.
std::optional<Diagnostic> PassedToCall(const Body& body, const Buffer& buffer);

}  // namespace tenon::primitive
