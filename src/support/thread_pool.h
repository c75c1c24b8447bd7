// Threads for compiling: independent pieces of work of a millisecond and more. The runtime has a
// pool of its own.
#pragma once

#include <cstdint>
#include <functional>

namespace tenon {

/// The number of CPUs this process may run on (its affinity mask), at least 1.
int AvailableCpus();

/// Calls fn(0) … fn(n - 1), each once, on up to `jobs` threads, the calling one included, and
/// returns when all are done. Indices are started in increasing order; results that fn stores by
/// index do not depend on `jobs`. When calls throw, no further index is started and the exception
/// of the lowest failing index is rethrown here: the same one for every number of jobs. Calls may
/// nest; jobs below 1 count as 1.
void ParallelFor(int64_t n, int jobs, const std::function<void(int64_t)>& fn);

}  // namespace tenon
