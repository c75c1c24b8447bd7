// The side of measuring that may die: loads kernels, checks what they compute, and times them in
// pairs. One request at a time; between requests it keeps the libraries and operands of the last
// one, so that an incumbent is loaded once.
//
// A pair is a burst of the incumbent and one of the candidate, the order changing from pair to
// pair. A burst is as many calls as take 0.2 ms, so that both meet the machine in the same state;
// one thread's time is its processor's, a team's and a device's that of the wall. A
// kernel that takes longer is a burst by itself; then pairs in which a thread of this process was
// put off its CPU are put aside (PairedRace).
#pragma once

#include <cstdint>

namespace tenon::measure {

struct WorkerLimits {
  int64_t most_bytes = 0;  // of this process's data (RLIMIT_DATA); 0: no limit
};

/// Answers requests, a line each (protocol.h), until `requests` ends; the status to exit with.
int RunWorker(int requests, int answers, const WorkerLimits& limits);

/// The exit status after a guard of an operand was touched; the answer says so, too.
inline constexpr int kTouchedGuard = 3;

}  // namespace tenon::measure
