// Which iterations of loops depend on each other, judged on what blocks declare.
#pragma once

#include <optional>
#include <vector>

#include "schedule/analysis/region.h"
#include "schedule/analysis/state.h"

namespace tenon::primitive {

/// True when every element of the buffer that `accesses` (of one buffer, all under the outermost of
/// `loops`) touch is touched in one iteration of the nest `loops` only. Then the order of these
/// iterations does not matter to the buffer.
bool ElementFixesLoops(const Body& body, const std::vector<Access>& accesses,
                       const std::vector<const For*>& loops);

/// One of `loops`, all around the block, whose iterations run the same reduction again (those of
/// the block's spatial loops do not, given that the others stand still); null when there is none.
const For* RepeatingLoop(const Body& body, const Place& block,
                         const std::vector<const For*>& loops);

/// True when, in each iteration of the loop `scope`, every read of the buffer finds what the same
/// iteration has written. With `whole`, the same of each run of the statement `scope`, loop or not.
bool IsCoveredIn(const Body& body, const Buffer& buffer, const Node* scope, bool whole = false);

/// True when one block is known to have written all that `read` declares, before it and in the same
/// iteration of the loops around both.
bool IsWrittenBefore(const Body& body, const Access& read);

/// True when no block outside `stmt` touches the buffer, but in loops that have it privately.
bool AllUsesUnder(const Body& body, const Buffer& buffer, const Node* stmt);

/// Why the iterations of the loop cannot run at the same time; nothing when they can: each element
/// is touched by one iteration only, or the buffer is scratch of each iteration. A reduction is no
/// obstacle to threads of a block, which combine their parts (loop/thread_reduction.h), and to
/// lanes where its block has no init and it permits reassociation. `kind` and `thread` say how they
/// would run; `own` gets the names of what is scratch.
std::optional<Diagnostic> ConflictBetweenIterations(const Body& body, const Place& loop,
                                                    ForKind kind, ThreadAxis thread, Names* own);

/// Why the loop may not be `kind` (over axis `thread`) because of where its values live: each
/// worker, or thread, has memory of its own in most scopes, so that nobody outside the loop finds
/// there what its iterations wrote; but a thread may in another loop of the same threadIdx axis.
std::optional<Diagnostic> ConflictOfScopes(const Body& body, const Place& loop, ForKind kind,
                                           ThreadAxis thread);

/// Both for all loops that run their iterations at the same time already. Where there is no
/// conflict, the loops say what is private to their iterations now.
std::optional<Diagnostic> JudgeConcurrentLoops(State* state);

/// Why a reduction that threads make together (loop/thread_reduction.h) cannot be any more: loops
/// that it runs over have changed.
std::optional<Diagnostic> JudgeThreadReductions(const Func& func);

/// The loop with `own` as the names of the buffers that are private to each of its iterations
/// (attribute `private`): nothing that an iteration reads there comes from outside of it, nothing
/// that it writes there is read outside of it. Primitives keep that true without asking again,
/// unless they place blocks.
Stmt WithPrivate(const For& loop, Names own);

/// True when a loop around the place, but not around `stmt`, has the buffer privately.
bool HasPrivately(const Place& place, const Buffer& buffer, const Node* stmt);

/// The buffers written under a statement, each once, with all accesses to them there.
std::vector<std::vector<Access>> WrittenUnder(const Body& body, const Node* stmt);

/// Why the nest cannot run in another order; nothing when it can. `from`: loops of a perfect nest,
/// outermost first; `to`: the same loops in the new order.
std::optional<Diagnostic> ConflictOfOrder(const Body& body, const std::vector<const For*>& from,
                                          const std::vector<const For*>& to);

/// Loops (of `loops`) whose variables the bindings of that kind mention.
std::vector<const For*> LoopsOfKind(const Block& block, IterKind kind,
                                    const std::vector<const For*>& loops);
bool BindsLoop(const Block& block, IterKind kind, const For* loop);
/// Does each worker, or thread of the axis, have memory of the scope for itself?
bool IsOwn(Scope scope, ForKind kind, ThreadAxis thread);

}  // namespace tenon::primitive
