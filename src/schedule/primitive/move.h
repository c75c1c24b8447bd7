// What moving a block to another place asks of it and of all others.
#pragma once

#include <optional>

#include "schedule/analysis/conflicts.h"

namespace tenon::primitive {

/// A place where a block may go.
struct Target {
  const Place* loop;       // directly in its body; null: outside all loops
  std::vector<Stmt> path;  // the statements around what goes there, outermost first

  static Target Under(const Place& loop);
  /// Beside the outermost loop around `block`.
  static Target Outside(const Place& block);
};

/// The deepest statement that is around both the block and the target; null when only the function
/// is.
const Node* MeetingPoint(const Place& block, const Target& target);

/// Why the block cannot be computed again, or over parts of its domain, at the target: it must
/// compute each element from what it reads, in whole reductions and reading nothing of the loops
/// around it, and its guard may say no more than its domains do.
std::optional<Diagnostic> NotMovable(const Body& body, const Place& block, const Target& target);

/// The block's value depends on more than its iteration variables and what it reads: on loops (or
/// lets) around it, as that of a pipeline's stage does.
std::optional<Diagnostic> NotClosed(const Place& block);

/// Buffers that a block writes, each once.
std::vector<Buffer> WrittenBy(const Block& block);
bool Reads(const Block& block, const Buffer& buffer);
bool Writes(const Block& block, const Buffer& buffer);

}  // namespace tenon::primitive
