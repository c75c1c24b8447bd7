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

/// What bounds the calls of a thread: tn_call's options.
struct CallLimits {
  int32_t max_team;     // 0: no bound but the pool's
  int64_t end;          // when they must be done, by NanosecondsNow; 0: no bound
  int64_t bytes_left;   // that they may still ask for
  const int32_t* stop;  // null, or not 0 once they are to stop
  void* workspace;      // of a device, for calls there; null: none
  int64_t workspace_bytes;
  int64_t* out_workspace_bytes;  // not null: is told how many it would be, and nothing is done
  mutable uint32_t cut = 0;      // 1 once a loop was left before its end, for the call is over

  bool HasEnd() const { return end != 0 || stop; }
};

/// Bounds the teams that this thread starts, and what it takes; null lifts all bounds. The limits
/// live until others are set. Returns those before.
CallLimits* SetThreadLimits(CallLimits* limits);
/// Those of now; may be null.
const CallLimits* ThreadLimits();

/// Whether the call has had its time, or is to stop.
bool IsOver(const CallLimits& limits);

/// Takes bytes from what this thread may ask for; -1 where that is less.
int32_t TakeBytes(int64_t bytes);

}  // namespace tenon::runtime
