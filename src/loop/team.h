// What the workers of a team, who all run the same host function, do as one of them.
#pragma once

#include "loop/stmt.h"

namespace tenon {

/// `team_rank() == 0`. In the branch of an If with this condition worker 0 is by itself: what is
/// called there sees a team of one, of which it is all, and meets nobody at barriers.
Expr IsFirstWorker();
/// Whether it is the If's condition.
bool IsFirstWorkers(const If& branch);

}  // namespace tenon
