// What the workers of a team, who all run the same host function, do as one of them.
#pragma once

#include "loop/func.h"
#include "loop/stmt.h"

namespace tenon {

/// `team_rank() == 0`. In the branch of an If with this condition worker 0 is by itself: what is
/// called there sees a team of one, of which it is all, and meets nobody at barriers.
Expr IsFirstWorker();
/// Whether it is the If's condition.
bool IsFirstWorkers(const If& branch);
/// Whether the function, or one that it calls, asks who it is of its team or waits for the others:
/// otherwise one worker does all of it.
bool MentionsTeam(const Module& module, const Func& func);

}  // namespace tenon
