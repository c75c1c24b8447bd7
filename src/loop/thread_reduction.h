// Reductions that the threads of a block make together.
//
// A loop over a threadIdx axis may run over the reduction of a block: each thread then has a part
// of it, and the parts are combined afterwards. Run serially such a loop is like any other.
// Schedules ask here whether that can be done, combine_threads (loop/pass/threads) does it.
#pragma once

#include <vector>

#include "loop/combiner.h"
#include "loop/stmt.h"
#include "support/expected.h"

namespace tenon {

/// The loops around a block whose reduction is shared out. All are outermost first, and the
/// variables of the block's bindings are those of `threads` and `serial` or of other loops, never
/// of both.
struct ThreadReduction {
  Combiner combiner;
  std::vector<const For*> threads;  // over its reduction: those over threads, of constant extents,
  std::vector<const For*> serial;   //   and those that each thread runs in order
  std::vector<const For*> spatial;  // inside the outermost of these: over its elements
  const For* outermost = nullptr;
  /// In terms of loops: the condition for an element to be there, null for none. What else guards
  /// the block says what belongs to a part.
  Expr of_element;
};

/// True for a loop over a threadIdx axis.
bool IsOverThreads(const For& loop);
/// True when such a loop runs over the reduction of a block inside: its iterations are no
/// independent ones then, and are those of the block's definition in order.
bool SharesReduction(const For& loop);

/// True when a loop of `path`, the statements around the block, is over threads and runs over its
/// reduction; of `loops`, those among them.
bool ReducesOverThreads(const Block& block, const std::vector<Stmt>& path);
bool ReducesOverThreads(const Block& block, const std::vector<const For*>& loops);

/// The block's reduction, of whose loops in `path` one at least is over threads, as `bound` is to
/// be (null for none); or why it cannot be shared out, in words that go on from "of block C: ".
Expected<ThreadReduction> ThreadReductionOf(const Block& block, const std::vector<Stmt>& path,
                                            const For* bound = nullptr);

/// Of a block whose reduction is shared out: a condition over thread axes, as a text. Of the
/// threads that have the result, those for which it holds store it.
inline constexpr char kStorePredicateAttr[] = "store_predicate";
/// The condition, with the axes' words for variables: axes[i] stands for AxisAt(i).
Expected<Expr> ParseStorePredicate(const std::string& text, const std::vector<Var>& axes);
/// Variables with the words of all axes of a launch.
std::vector<Var> AxisVariables();

}  // namespace tenon
