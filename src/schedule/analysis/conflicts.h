// Why iterations may not run at the same time, or in another order.
#pragma once

#include <optional>
#include <vector>

#include "dependence/coverage.h"
#include "dependence/iterations.h"
#include "schedule/analysis/state.h"

namespace tenon::primitive {

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
/// conflict, the loops say what is private to their iterations now. Loops that stand as they stood
/// when they were judged last are not judged again.
std::optional<Diagnostic> JudgeConcurrentLoops(State* state);

/// Why a reduction that threads make together (loop/thread_reduction.h) cannot be any more: loops
/// that it runs over have changed.
std::optional<Diagnostic> JudgeThreadReductions(const Func& func);

/// The loop with `own` as the names of the buffers that are private to each of its iterations
/// (attribute `private`): nothing that an iteration reads there comes from outside of it, nothing
/// that it writes there is read outside of it. Primitives keep that true without asking again,
/// unless they place blocks.
Stmt WithPrivate(const For& loop, Names own);

/// Why the nest cannot run in another order; nothing when it can. `from`: loops of a perfect nest,
/// outermost first; `to`: the same loops in the new order.
std::optional<Diagnostic> ConflictOfOrder(const Body& body, const std::vector<const For*>& from,
                                          const std::vector<const For*>& to);

/// Does each worker, or thread of the axis, have memory of the scope for itself?
bool IsOwn(Scope scope, ForKind kind, ThreadAxis thread);

}  // namespace tenon::primitive
