// The pool of workers that calls take their teams from.
#pragma once

#include "tenon/kernel_abi.h"

namespace tenon::runtime {

/// tn_core_run_team on this copy's own pool.
int32_t RunTeam(tn_body_fn body, void* closure, int32_t max_team);

/// The threads that this process can keep busy: the affinity mask bounded by the cgroup's quota. At
/// least 1. Read once per process.
int32_t CpuCount();

/// The most members a team can have here: TENON_NUM_THREADS, else CpuCount(). Read once per
/// process.
int32_t TeamLimit();

/// Ends the workers that are idle, for this copy's code is about to go; afterwards nobody may ask
/// it for a team. A worker that goes on for longer than a moment is left alone: then the process
/// ends.
void EndWorkers();

/// Bounds the teams that this thread starts (tn_call's option); 0 lifts the bound. Returns the
/// bound before.
int32_t SetThreadTeamLimit(int32_t limit);

}  // namespace tenon::runtime
